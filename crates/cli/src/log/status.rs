//! `weir log status`: asks a running collector what it does.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_tui::style::stdout_style;

use crate::exit_status::FAILED;
use crate::output::OutputOptions;

/// Show what the collector of a log does: sources, rates, backlog, drops, the last sync
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the status as JSON (schema weir-log/1); - is standard output")))]
pub struct Args {
    /// The log that a weir log writes
    #[arg(value_name = "FILE")]
    log: PathBuf,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir log status all.log            sources and counts
  weir log status --json - all.log   for other programs

Exit status:
  0  the collector has answered
  1  no collector writes this file
  2  wrong usage, or the file of --json cannot be created";

/// Runs `weir log status` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let mut files = match args.output.open_or_report() {
        Ok(files) => files,
        Err(status) => return status,
    };
    let document = match weir_collect::ask(&args.log) {
        Ok(document) => document,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(FAILED);
        }
    };
    files.finish(|| weir_report::log::status_screen(&document, &stdout_style()), &document, false)
}
