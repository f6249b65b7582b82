//! `weir peek`: the command line, and what is shown.

use std::process::ExitCode;

use weir_model::peek::{Peek, PeekDocument};
use weir_report::peek::screen;
use weir_sys::proc;
use weir_sys::process_access::AccessProblem;
use weir_tui::style::stdout_style;

use crate::output::OutputOptions;
use crate::{FAILED, USAGE, console};

/// See what a running process holds in its buffers
///
/// Each stream with bytes that the program has written and nobody has seen: where they go, who reads there, how the
/// stream is buffered, how long they have waited at least, when they would appear, and the bytes themselves; and where
/// the process is blocked. It is only read: not stopped, not changed. For glibc, musl (static and stripped programs
/// too), CPython, Perl, libweir and Rust's standard output.
#[derive(clap::Args)]
#[command(override_usage = "weir peek [OPTIONS] PID...", after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write what was seen as JSON (schema weir-peek/1); - is standard output")))]
pub struct Args {
    /// Processes
    #[arg(value_name = "PID", required = true, value_parser = clap::value_parser!(u32).range(1..))]
    pids: Vec<u32>,

    /// Their children too, and theirs
    #[arg(long)]
    children: bool,

    /// Show all bytes that wait, not only the first
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir peek 4711                    why is it silent? what is in there?
  weir peek --full 4711             all of it
  weir peek --children $(pgrep make)
  weir peek --json - 4711           for other programs

To write it out: weir flush PID.

Exit status: 0 well; 1 a process could not be looked into: standard error says why; 2 wrong usage.";

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    let mut output = match args.output.open() {
        Ok(output) => output,
        Err(error) => {
            complain!("weir: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let (processes, mut failed) = look(args);
    if output.shows_screen()
        && let Err(error) = console::print_screen(&screen(&processes, args.full, &stdout_style()))
    {
        complain!("weir: {error}");
        failed = true;
    }
    if let Err(error) = output.write_json(&PeekDocument::new(&processes)) {
        complain!("weir: {error}");
        failed = true;
    }
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// A child that ended meanwhile is nothing to complain of.
fn look(args: &Args) -> (Vec<Peek>, bool) {
    let (mut processes, mut failed): (Vec<Peek>, bool) = (Vec::new(), false);
    for named in &args.pids {
        let children = if args.children { proc::descendants(*named) } else { Vec::new() };
        for pid in std::iter::once(*named).chain(children) {
            if processes.iter().any(|one| one.pid == pid) {
                continue;
            }
            match weir_probe::peek::peek(pid, args.full) {
                Ok(peek) => processes.push(peek),
                Err(AccessProblem::Gone(_) | AccessProblem::Zombie { .. }) if pid != *named => {}
                Err(error) => {
                    complain!("weir: {error}");
                    failed = true;
                }
            }
        }
    }
    (processes, failed)
}
