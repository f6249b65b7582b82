//! What the checks of experiments are written with: not a verb for people.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_lab::{Error, look, timing};

use super::print;
use crate::FAILED;

/// Tools of the experiments' checks
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(clap::Subcommand)]
enum Tool {
    /// Figures of the entries of an array of a JSON file, a line each
    Look { file: PathBuf, array: String, figures: String, conditions: Vec<String> },
    /// The sum of a figure over such entries
    Sum { file: PathBuf, array: String, figure: String, conditions: Vec<String> },
    /// How many such entries there are
    Count { file: PathBuf, array: String, conditions: Vec<String> },
    /// Elapsed, user and system seconds of a run, the mean of so many, written to a file
    Time {
        file: PathBuf,
        runs: u32,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

/// Runs the tool.
pub fn run(args: &Args) -> ExitCode {
    match done(&args.tool) {
        Ok(text) if text.is_empty() || print(&text) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FAILED),
        Err(error) => {
            complain!("weir: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn done(tool: &Tool) -> Result<String, Error> {
    match tool {
        Tool::Look { file, array, figures, conditions } => {
            let lines = look::lines(&look::entries(file, array, conditions)?, figures);
            Ok(lines.into_iter().map(|line| line + "\n").collect())
        }
        Tool::Sum { file, array, figure, conditions } => {
            Ok(format!("{}\n", look::sum(&look::entries(file, array, conditions)?, figure)))
        }
        Tool::Count { file, array, conditions } => {
            Ok(format!("{}\n", look::entries(file, array, conditions)?.len()))
        }
        Tool::Time { file, runs, command } => {
            let seconds = timing::time(command, *runs)?;
            let text = format!("{:.9} {:.9} {:.9}\n", seconds.elapsed, seconds.user, seconds.system);
            let failed = |source| Error::File { path: file.clone(), call: "write", source };
            fs::write(file, text).map(|()| String::new()).map_err(failed)
        }
    }
}
