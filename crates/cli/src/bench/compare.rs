//! `weir bench compare A.json B.json`: parses the command line, compares two results, prints and writes the ratios.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_bench::{Error, Result};
use weir_model::bench::compare::{BenchComparison, compare};
use weir_model::bench::{BenchDocument, SCHEMA};
use weir_tui::style::stdout_style;

use crate::console;
use crate::output::{OutputFiles, OutputOptions, TableFiles};

/// Compare two results that --json wrote, with intervals and ties
#[derive(clap::Args)]
#[command(mut_arg("json", |arg| arg.help(JSON_HELP)), after_help = EXAMPLES)]
pub struct Args {
    /// JSON result to compare with
    a: PathBuf,
    /// JSON result to compare
    b: PathBuf,

    #[command(flatten)]
    output: OutputOptions<TableFiles>,
}

const EXAMPLES: &str = "\
Examples:
  weir bench compare before.json after.json
  weir bench compare --json - before.json after.json

A ratio below 1 means that the second result is faster. 'tie' means that the
interval contains 1, or that the difference is within the noise of both runs.";

const JSON_HELP: &str = "Write the comparison as JSON (schema weir-bench-compare/1); - is standard output";

/// Runs `weir bench compare` and returns the exit status.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let names = [&args.a, &args.b].map(|path| path.display().to_string());
    let comparison = compare([&names[0], &names[1]], &a, &b);
    if comparison.rows.is_empty() {
        return Err(Error::Failed(format!(
            "{} and {} have no row in common: run both with the same workload, method, records, --size, --sync and --cache",
            names[0], names[1]
        )));
    }
    let files = args.output.open().map_err(Error::Failed)?;
    write_results(files, &comparison).map_err(Error::Failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the screen and writes the files.
fn write_results(mut files: OutputFiles, comparison: &BenchComparison) -> std::result::Result<(), String> {
    if files.shows_screen() {
        console::print_screen(&weir_report::bench::screen_compare(comparison, &stdout_style()))?;
    }
    files.write_document(comparison)?;
    files.write_csv(|| weir_report::bench::csv_compare(comparison))?;
    files.write_markdown(|| weir_report::bench::markdown_compare(comparison))
}

fn read(path: &Path) -> Result<BenchDocument> {
    const ADVICE: &str = "give a file that 'weir bench --json' wrote";
    let text = std::fs::read_to_string(path).map_err(|error| Error::system("read", path, &error, ADVICE))?;
    let invalid = |problem: String| Error::Failed(format!("{}: {problem}; {ADVICE}", path.display()));
    let document: BenchDocument = serde_json::from_str(&text)
        .map_err(|error| invalid(format!("not a result of weir bench ({error})")))?;
    if document.schema != SCHEMA {
        return Err(invalid(format!("its schema is '{}', not '{SCHEMA}'", document.schema)));
    }
    Ok(document)
}
