//! `weir bench compare`: parses the command line, compares two results, or shows the trend of several.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_bench::{Error, Result};
use weir_model::Ratio;
use weir_model::bench::compare::{BenchComparison, ComparisonVerdict, compare, unjudged};
use weir_model::bench::trend::{BenchTrend, trend};
use weir_model::bench::{BenchDocument, SCHEMA};
use weir_report::bench as report;
use weir_tui::style::stdout_style;

use super::ExportOptions;
use crate::exit_status::FAILED;
use crate::output::{OutputFiles, OutputOptions, TableFiles, joined, status_after};

/// Compare two results that --json wrote, with intervals and ties, or show the trend of several
///
/// With more than two results, or a directory of them, weir orders them by time, finds the runs at which the level of a
/// row changes, and compares the last run with the level before it.
#[derive(clap::Args)]
#[command(mut_arg("json", |arg| arg.help(JSON_HELP)), after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct Args {
    /// JSON results, the first one to compare with; or directories of results
    #[arg(value_name = "FILE", required = true)]
    runs: Vec<PathBuf>,

    /// Exit with 1 if a row is slower by this share or more, and by more than the noise: of the second result, or of the last
    /// one of several
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    fail_on: Option<f64>,

    #[command(flatten)]
    export: ExportOptions,

    #[command(flatten)]
    output: OutputOptions<TableFiles>,
}

const EXAMPLES: &str = "\
Examples:
  weir bench compare before.json after.json
  weir bench compare --json - before.json after.json
  weir bench compare --fail-on 5% main.json branch.json   for CI
  weir bench compare results/ --html trend.html           all results in it

A ratio below 1 means that the second result is faster. 'tie' means that the
interval contains 1, or that the difference is within the noise of both runs.
A row with fewer than 3 rounds in a result has no interval and is not judged.

Exit status:
  0  success
  1  a row is slower than --fail-on allows, or failure
  2  wrong usage, or the file of --json cannot be created";

const JSON_HELP: &str = "Write the comparison as JSON (schema weir-bench-compare/1, of several results weir-bench-trend/1); - is standard output";

/// Parses `5%` or `5` and returns the share.
fn parse_percent(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("'{text}' is not a share such as 5%")),
    }
}

/// Runs `weir bench compare` and returns the exit status.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut documents = Vec::new();
    for path in result_files(&args.runs)? {
        documents.push((path.display().to_string(), read(&path)?));
    }
    match documents.as_slice() {
        [] | [_] => {
            Err(Error::Usage("compare at least two results, or a directory with two or more of them".into()))
        }
        [a, b] => compare_two(args, a, b),
        _ => show_trend(args, documents),
    }
}

/// Returns the files, and for each directory the results in it: files named *.json with the schema of weir bench.
fn result_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error| Error::system("readdir", path, &error, "give a directory of results");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            let is_json = file.extension().is_some_and(|extension| extension == "json");
            // To open a FIFO would block.
            if is_json && file.is_file() && is_result(&file) {
                found.push(file);
            }
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// Returns whether a file in a directory of results is one; others, such as comparisons, are left out.
fn is_result(path: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Schema {
        schema: String,
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // A damaged result is no other document: reading it later gives the error.
    serde_json::from_str::<Schema>(&text).map_or(text.contains(SCHEMA), |found| found.schema == SCHEMA)
}

fn compare_two(args: &Args, a: &(String, BenchDocument), b: &(String, BenchDocument)) -> Result<ExitCode> {
    let comparison = compare([&a.0, &b.0], &a.1, &b.1);
    if comparison.rows.is_empty() {
        return Err(Error::Failed(format!(
            "{} and {} have no row in common: run both with the same workload, method, records, --size, --sync and --cache",
            a.0, b.0
        )));
    }
    let files = args.output.open().map_err(Error::Usage)?;
    args.export.check(&files).map_err(Error::Failed)?;
    let written = write_comparison(args, files, &comparison);
    let rows = comparison.rows.iter().map(|row| {
        let label = format!("{} {} {}", row.group.workload, row.method, weir_model::Size(row.record_bytes));
        (label, row.verdict, row.ratio.value)
    });
    note_unjudged(args, comparison.rows.iter().map(|row| &row.ratio));
    Ok(status_after(written, status(args, rows)))
}

fn show_trend(args: &Args, documents: Vec<(String, BenchDocument)>) -> Result<ExitCode> {
    let trend = trend(documents);
    if trend.rows.is_empty() {
        return Err(Error::Failed(
            "the last result has no row in common with the others: run all with the same options".into(),
        ));
    }
    let files = args.output.open().map_err(Error::Usage)?;
    if args.export.format().is_some() {
        return Err(Error::Failed("--format exports one result, or the comparison of two".into()));
    }
    let written = write_trend(files, &trend);
    note_unjudged(args, trend.rows.iter().map(|row| &row.latest));
    let rows = trend.rows.iter().map(|row| (row.label.clone(), row.verdict, row.latest.value));
    Ok(status_after(written, status(args, rows)))
}

/// Reports the rows that `--fail-on` cannot judge, also with --quiet: success claims nothing about them.
fn note_unjudged<'a>(args: &Args, ratios: impl Iterator<Item = &'a Ratio>) {
    if let Some(sentence) = args.fail_on.and_then(|_| unjudged(ratios)) {
        eprintln_lossy!("weir: --fail-on: {sentence}");
    }
}

/// Returns failure if a row is slower than `--fail-on` allows, and names these rows.
fn status(args: &Args, rows: impl Iterator<Item = (String, ComparisonVerdict, f64)>) -> ExitCode {
    let Some(allowed) = args.fail_on else { return ExitCode::SUCCESS };
    let too_slow =
        rows.filter(|(_, verdict, ratio)| *verdict == ComparisonVerdict::Slower && *ratio >= 1.0 + allowed);
    let mut failed = false;
    for (label, _, ratio) in too_slow {
        failed = true;
        eprintln_lossy!("weir: slower by {:.1} %: {label}", (ratio - 1.0) * 100.0);
    }
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// Prints the screen and writes the files: each also if another fails. Returns all errors as one.
fn write_comparison(
    args: &Args,
    mut files: OutputFiles,
    comparison: &BenchComparison,
) -> std::result::Result<(), String> {
    let exported = args.export.format().map(|format| report::export_compare(comparison, format));
    joined([
        files.print(exported, || report::screen_compare(comparison, &stdout_style())),
        files.write_document(comparison),
        files.write_csv(|| report::csv_compare(comparison)),
        files.write_markdown(|| report::markdown_compare(comparison)),
    ])
}

/// As [`write_comparison`].
fn write_trend(mut files: OutputFiles, trend: &BenchTrend) -> std::result::Result<(), String> {
    joined([
        files.present(|| report::screen_trend(trend, &stdout_style()), trend),
        files.write_csv(|| report::csv_trend(trend)),
        files.write_markdown(|| report::markdown_trend(trend)),
    ])
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
