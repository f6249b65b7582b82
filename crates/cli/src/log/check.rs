//! `weir log check`: counts the whole, torn and interleaved records of a log.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_bench::settings::environment;
use weir_collect::Framing;
use weir_collect::check::{CheckOptions, check};
use weir_tui::style::stdout_style;

use super::options::parse_regex;
use crate::exit_status::FAILED;
use crate::output::{OutputOptions, PageFile, own_command};

/// Count the whole, torn and interleaved records of a log, by writer, and show where it is damaged
///
/// Without --pattern and --uniform each terminated record is whole. In a log with another delimiter than NUL, a record with
/// NUL bytes is torn. A record of over 16 MiB is torn, too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the counts as JSON (schema weir-log-check/1); - is standard output")))]
pub struct Args {
    /// The log
    #[arg(value_name = "FILE")]
    log: PathBuf,

    /// How the log is divided into records, as for weir log
    #[arg(long, value_name = "FORM", default_value = "newline")]
    record: Framing,

    /// A whole record matches REGEX from start to end. (?<writer>…) in it is its writer, (?<number>…) its number
    #[arg(long, value_name = "REGEX", value_parser = parse_regex)]
    pattern: Option<regex::bytes::Regex>,

    /// A whole record repeats one byte, which names its writer
    #[arg(long, conflicts_with = "pattern")]
    uniform: bool,

    #[command(flatten)]
    output: OutputOptions<PageFile>,
}

const EXAMPLES: &str = "\
Examples:
  weir log check all.log
  weir log check out --record len:9999 --uniform
  weir log check x.log --pattern '(?<writer>web\\d+)\\[\\d+\\]: #(?<number>\\d+) .*'

Exit status:
  0  every record is whole, no bytes follow the last one, and no number is
     missing or repeated
  1  records are damaged or missing, or the log cannot be read
  2  wrong usage, or the file of --json cannot be created";

/// Runs `weir log check` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let mut files = match args.output.open_or_report() {
        Ok(files) => files,
        Err(status) => return status,
    };
    let options = CheckOptions { framing: args.record, pattern: args.pattern.clone(), uniform: args.uniform };
    let mut document = match check(&args.log, &options) {
        Ok(document) => document,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(FAILED);
        }
    };
    if files.wants_document() {
        document.command = own_command();
        document.environment = environment(&args.log);
    }
    let screen = || weir_report::log::check_screen(&document, &stdout_style());
    files.finish(screen, &document, !document.is_good())
}
