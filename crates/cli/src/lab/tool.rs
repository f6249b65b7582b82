//! `weir lab-tool`: commands for the check.sh of an experiment. A hidden verb.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_lab::{Error, comparison, json_query, timing};
use weir_model::bench::compare::ComparisonVerdict;

use crate::console;
use crate::exit_status::FAILED;

/// Tools for the checks of experiments
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(clap::Subcommand)]
enum Tool {
    /// Print figures of the entries of an array in a JSON file, one line per entry
    Figures { file: PathBuf, array: String, figures: String, conditions: Vec<String> },
    /// Print the sum of a figure over these entries
    Sum { file: PathBuf, array: String, figure: String, conditions: Vec<String> },
    /// Print the number of these entries
    Count { file: PathBuf, array: String, conditions: Vec<String> },
    /// Compare the elapsed times of two rows of weir bench: print first, second or tie, then the ratio and its interval
    Faster { file: PathBuf, first: String, second: String },
    /// Run a command several times and write its mean elapsed seconds to a file, with user and system seconds if the
    /// runs are long enough
    Time {
        file: PathBuf,
        runs: u32,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

/// Runs `weir lab-tool` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let output = output_of(&args.tool).map_err(|error| error.to_string());
    match output.and_then(|text| if text.is_empty() { Ok(()) } else { console::print_screen(&text) }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Runs the tool and returns its text for standard output.
fn output_of(tool: &Tool) -> Result<String, Error> {
    match tool {
        Tool::Figures { file, array, figures, conditions } => {
            let lines = json_query::lines(&json_query::entries(file, array, conditions)?, figures);
            Ok(lines.into_iter().map(|line| line + "\n").collect())
        }
        Tool::Sum { file, array, figure, conditions } => {
            Ok(format!("{}\n", json_query::sum(&json_query::entries(file, array, conditions)?, figure)))
        }
        Tool::Count { file, array, conditions } => {
            Ok(format!("{}\n", json_query::entries(file, array, conditions)?.len()))
        }
        Tool::Faster { file, first, second } => {
            let (verdict, ratio) = comparison::rows(file, first, second)?;
            let faster = match verdict {
                ComparisonVerdict::Faster => "first",
                ComparisonVerdict::Slower => "second",
                ComparisonVerdict::Tie => "tie",
            };
            let [low, high] = ratio.ci95;
            Ok(format!("{faster}\t{:.2}\t{low:.2}\t{high:.2}\n", ratio.value))
        }
        Tool::Time { file, runs, command } => {
            let seconds = timing::time(command, *runs)?;
            let divided = seconds.divided(*runs).map(|[user, system]| format!(" {user:.9} {system:.9}"));
            let text = format!("{:.9}{}\n", seconds.elapsed, divided.unwrap_or_default());
            let write_error = |source| Error::File { path: file.clone(), call: "write", source };
            fs::write(file, text).map(|()| String::new()).map_err(write_error)
        }
    }
}
