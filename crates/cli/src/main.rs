//! The `weir` binary: one module per verb parses the command line, calls the other crates and sets the exit status.

/// Prints a line to standard error and ignores write errors. `eprintln!` would panic on a full disk or a closed pipe,
/// and the exit status of the command that weir ran would be lost.
macro_rules! eprintln_lossy {
    ($($line:tt)*) => {{
        let line = weir_model::escaped_lines(&format!($($line)*));
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{line}\n"));
    }};
}

mod advise;
mod bench;
mod console;
mod copy;
mod dist;
mod doctor;
mod exit_status;
mod flush;
mod lab;
mod log;
mod manual;
mod output;
mod output_file;
mod own_command;
mod page_file;
mod peek;
mod picture_file;
mod progress;
mod report;
mod run;
mod script_directory;
mod signals;
mod top;
mod trace;
mod usage_message;
mod usage_tip;
mod values;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use weir_sys::file_system::{is_foreground, is_terminal};
use weir_sys::worker::WorkerLimits;

/// Measure, explain and fix what buffering does to a program's bytes
#[derive(Parser)]
#[command(name = "weir", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  weir bench copy                      time copying by record size and method
  weir bench write --sync none,o_sync  time writing with and without O_SYNC
  weir bench --published tlpi-13       measure the tables of a textbook
  weir trace -- ./program              report slow or lost reads and writes
  weir run -- ./program                write bytes within 100 ms (see --help)
  weir peek 4711                       show the buffers of a running process
  weir flush 4711                      write its buffers now
  weir log -o all.log --listen unix:s  collect whole records from many writers
  weir copy -a --sync full src /mnt    copy a tree and make it durable
  weir top                             list tiny calls and pending bytes, live
  weir report copy.json -o copy.html   make a page with pictures
  weir advise                          choose how to write, with its price
  weir doctor                          show what this machine allows

Exit status:
  0    success
  1    failure
  2    wrong usage
  130  stopped by Ctrl-C
'weir trace' and 'weir run' return the command's status; see their --help.";

#[derive(Subcommand)]
enum Verb {
    Bench(Box<bench::Args>),
    Trace(Box<trace::Args>),
    Lab(lab::Args),
    Log(Box<log::Args>),
    Copy(Box<copy::Args>),
    Run(Box<run::Args>),
    Peek(peek::Args),
    Flush(flush::Args),
    Top(top::Args),
    Report(report::Args),
    Advise(Box<advise::Args>),
    Doctor(doctor::Args),
    #[command(hide = true)]
    LabTool(lab::tool::Args),
    #[command(hide = true)]
    Dist(dist::Args),
}

/// Parses the command line.
///
/// `weir run` and `weir copy` are parsed without the other verbs: building their option tables takes longer than all other
/// work that these do before the command or the copy starts.
fn parse_verb() -> Verb {
    match std::env::args_os().nth(1).as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("run") => Verb::Run(Box::new(parse_only::<run::Args>("run"))),
        Some("copy") => Verb::Copy(Box::new(parse_copy())),
        _ => Cli::try_parse().map_or_else(
            |error| {
                let error = usage_tip::with_value_tip(error, &Cli::command());
                usage_message::exit(error, exit_status::USAGE)
            },
            |cli| cli.verb,
        ),
    }
}

/// Parses the command line of one verb, which is the first argument.
fn parse_only<A: Args>(verb: &'static str) -> A {
    matches_of(verb)
        .map(|(args, _)| args)
        .unwrap_or_else(|error| usage_message::exit(error, exit_status::USAGE))
}

/// Parses the command line of `weir copy`. Wrong usage gives cp's status.
fn parse_copy() -> copy::Args {
    match matches_of::<copy::Args>("copy") {
        Ok((mut args, matches)) => {
            args.note_order(&matches);
            args
        }
        Err(error) => usage_message::exit(error, exit_status::FAILED),
    }
}

/// Parses the command line of one verb. Returns its arguments, and what clap found.
fn matches_of<A: Args>(verb: &'static str) -> Result<(A, clap::ArgMatches), clap::Error> {
    let table = A::augment_args(clap::Command::new(verb));
    let command = clap::Command::new("weir").subcommand(table).subcommand_required(true);
    let mut matches =
        command.try_get_matches().map_err(|error| usage_tip::with_value_tip(error, &Cli::command()))?;
    let (_, matches) = matches.remove_subcommand().expect("the first argument is the verb");
    match A::from_arg_matches(&matches) {
        Ok(args) => Ok((args, matches)),
        Err(error) => Err(error.format(&mut Cli::command())),
    }
}

/// Returns a sentence if the current directory, or that for temporary files, does not answer. These verbs write or start programs there.
fn unusable_directory() -> Option<String> {
    let temporary = std::env::temp_dir();
    let is_bad = |directory: &&std::path::Path| !weir_sys::file_system::is_usable(directory);
    let bad = [std::path::Path::new("."), &temporary].into_iter().find(is_bad)?;
    let advice = "change to another directory, or set TMPDIR";
    let name =
        if bad == temporary { temporary.display().to_string() } else { "the current directory".into() };
    Some(format!("{name}: its file system does not answer, or another user serves it (FUSE): {advice}"))
}

/// Returns the limits of a verb that works in a child of weir, because the file systems of its directories can stop answering.
fn worker_limits(verb: &Verb) -> Option<WorkerLimits> {
    /// A copy ends by itself 1.5 s after a signal; then it removes what is not finished.
    const COPY: Duration = Duration::from_millis(2500);
    /// The figures until the signal are printed after the current sample, which may wait for a slow disk.
    const MEASUREMENT: Duration = Duration::from_secs(8);
    match verb {
        Verb::Copy(_) => Some(WorkerLimits { after_first: COPY }),
        Verb::Bench(_) | Verb::Lab(_) | Verb::Advise(_) => Some(WorkerLimits { after_first: MEASUREMENT }),
        _ => None,
    }
}

/// Prints a sentence about the worker of a verb. A progress bar is drawn again below.
fn report_wait(sentence: &str) {
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    let verb = verb.to_string_lossy();
    let draws = is_terminal(std::io::stderr()) && is_foreground(std::io::stderr());
    let clear = if draws { "\r\x1b[2K" } else { "" };
    let line = weir_model::escaped_lines(sentence);
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{clear}weir {verb}: {line}\n"));
}

fn main() -> ExitCode {
    weir_sys::signals::keep_ended_children();
    // A sample of `weir bench` runs this program again. This comes first so that the sample starts fast.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == weir_bench::sample::CHILD_ARGUMENT) {
        return ExitCode::from(weir_bench::sample::child_main() as u8);
    }
    weir_sys::inherited::let_closed_fail();
    weir_sys::hang_guard::allow(|sentence| eprintln_lossy!("weir: {sentence}"));
    if let Some(status) = weir_sys::hang_guard::waiter_main() {
        return ExitCode::from(status);
    }
    if let Some(problem) = weir_sys::limits::too_low() {
        eprintln_lossy!("weir: {problem}");
        let runs_command = std::env::args_os().nth(1).is_some_and(|verb| verb == "run" || verb == "trace");
        return ExitCode::from(if runs_command { exit_status::WEIR_FAILED } else { exit_status::FAILED });
    }
    weir_sys::signals::catch_file_size_limit();
    run_verb()
}

/// Does the work of weir. It is not part of `main`, because with all verbs its frame is too large for a low limit of the stack.
#[inline(never)]
fn run_verb() -> ExitCode {
    let verb = parse_verb();
    if let Some(limits) = worker_limits(&verb) {
        weir_sys::worker::start(limits, report_wait);
    }
    if matches!(verb, Verb::Bench(_) | Verb::Lab(_) | Verb::Advise(_) | Verb::Doctor(_))
        && let Some(problem) = unusable_directory()
    {
        eprintln_lossy!("weir: {problem}");
        return ExitCode::from(exit_status::FAILED);
    }
    signals::end(match verb {
        Verb::Bench(args) => bench::run(*args),
        Verb::Trace(args) => trace::run(*args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Log(args) => log::run(&args),
        Verb::Copy(args) => copy::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Peek(args) => peek::run(&args),
        Verb::Flush(args) => flush::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Advise(args) => advise::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::LabTool(args) => lab::tool::run(&args),
        Verb::Dist(args) => dist::run(&args),
    })
}
