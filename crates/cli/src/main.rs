//! The `weir` binary: one module per verb parses the command line, calls the other crates and sets the exit status.

/// A line on standard error. One that cannot be written (a full disk, a closed pipe) is lost: the status of a command
/// that was run is not to be lost with it, as `eprintln!` would.
macro_rules! complain {
    ($($line:tt)*) => {{
        let _lost = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($line)*)));
    }};
}

mod bench;
mod console;
mod dist;
mod flush;
mod lab;
mod output;
mod output_file;
mod peek;
mod progress;
mod run;
mod signals;
mod top;
mod trace;
mod values;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

/// What is said when the command line is understood but wrong.
pub(crate) const USAGE: u8 = 2;
/// The requested operation failed.
pub(crate) const FAILED: u8 = 1;
/// A signal ended weir or the command: its number is added, as shells do.
pub(crate) const SIGNAL_STATUS: u8 = 128;

/// Measure, explain and fix what buffering does to a program's bytes.
#[derive(Parser)]
#[command(name = "weir", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  weir bench copy                     what a copy costs here, by record size and method
  weir bench write --sync none,o_sync what durability costs
  weir bench --published tlpi-13      the textbook's tables, measured here
  weir trace -- ./program             what a program does with its bytes, and what is wrong
  weir run -- ./program               no byte waits longer than 100 ms in it, at full speed
  weir peek 4711                      what a running process holds in its buffers
  weir flush 4711                     write that out now
  weir top                            which processes make tiny calls, and whose bytes wait

Exit status: 0 well; 1 the thing asked for failed; 2 wrong usage; 130 stopped by Ctrl-C.
With 'weir trace' and 'weir run' the command's own; see their --help.";

#[derive(Subcommand)]
enum Verb {
    Bench(Box<bench::Args>),
    Trace(Box<trace::Args>),
    Lab(lab::Args),
    Run(Box<run::Args>),
    Peek(peek::Args),
    Flush(flush::Args),
    Top(top::Args),
    #[command(hide = true)]
    LabTool(lab::tool::Args),
    #[command(hide = true)]
    Dist(dist::Args),
}

/// `weir run` stands before other commands and is to start at once: the tables of the other verbs' options are not
/// made for it, which take longer than all that it does.
fn verb() -> Verb {
    if std::env::args_os().nth(1).is_none_or(|word| word != "run") {
        return Cli::parse().verb;
    }
    let run = run::Args::augment_args(clap::Command::new("run"));
    let matches = clap::Command::new("weir").subcommand(run).subcommand_required(true).get_matches();
    let (_, of_run) = matches.subcommand().expect("the only word that is a verb");
    match run::Args::from_arg_matches(of_run) {
        Ok(args) => Verb::Run(Box::new(args)),
        Err(error) => error.format(&mut Cli::command()).exit(),
    }
}

fn main() -> ExitCode {
    // A sample is this program started again: before anything else, so that it starts as fast as it can.
    if std::env::args_os().nth(1).is_some_and(|word| word == weir_bench::sample::CHILD_ARGUMENT) {
        return ExitCode::from(weir_bench::sample::child_main() as u8);
    }
    match verb() {
        Verb::Bench(args) => bench::run(*args),
        Verb::Trace(args) => trace::run(*args),
        Verb::Lab(args) => lab::run(args),
        Verb::Run(args) => run::run(*args),
        Verb::Peek(args) => peek::run(&args),
        Verb::Flush(args) => flush::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::LabTool(args) => lab::tool::run(&args),
        Verb::Dist(args) => dist::run(&args),
    }
}
