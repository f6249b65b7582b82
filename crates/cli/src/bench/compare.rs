//! `weir bench compare A.json B.json`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_bench::{Error, Result};
use weir_model::bench::compare::compare;
use weir_model::bench::{BenchDocument, SCHEMA};

use crate::export::{Exports, json};
use crate::screen;

/// Compare two results that --json wrote, with intervals and ties
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  weir bench compare before.json after.json
  weir bench compare --json - before.json after.json

A ratio below 1 means that the second is faster. 'tie': the interval holds 1, or the difference is inside
the noise of the two runs.")]
pub struct Args {
    /// The result to compare with
    a: PathBuf,
    /// The result to compare
    b: PathBuf,
    /// Write the comparison as JSON (schema weir-bench-compare/1); - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the rows as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the table as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// No screen: only the files and errors
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the verb.
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
    let exports = Exports::open([&args.json, &args.csv, &args.markdown])?;
    if !args.quiet && !exports.to_stdout() {
        let text = weir_report::bench::screen_compare(&comparison, &screen::style());
        screen::print(&text).map_err(|error| Error::Failed(format!("standard output: write: {error}")))?;
    }
    exports.write([&|| json(&comparison), &|| Ok(weir_report::bench::csv_compare(&comparison)), &|| {
        Ok(weir_report::bench::markdown_compare(&comparison))
    }])?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<BenchDocument> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::system("read", path, &error, "give a file that 'weir bench --json' wrote"))?;
    let wrong = |what: String| {
        Error::Failed(format!("{}: {what}; give a file that 'weir bench --json' wrote", path.display()))
    };
    let document: BenchDocument = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("not a result of weir bench ({error})")))?;
    if document.schema != SCHEMA {
        return Err(wrong(format!("its schema is '{}', not '{SCHEMA}'", document.schema)));
    }
    Ok(document)
}
