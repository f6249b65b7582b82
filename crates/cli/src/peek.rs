//! `weir peek`: parses the command line, reads the buffers of the processes, prints them.

use std::process::ExitCode;

use weir_inspect::fork_copies::{fork_copies, mark_copies};
use weir_model::peek::{Peek, PeekDocument, RestartCommand};
use weir_model::{Size, Untrusted, text_of};
use weir_report::peek::screen;
use weir_sys::proc;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::start_directories::start_directories;
use weir_tui::style::stdout_style;

use crate::output::OutputOptions;
use crate::own_command::StartedProgram;
use crate::values::{parse_nonzero_size, parse_pid};

/// Show what a running process has in its buffers
///
/// weir lists each stream with pending bytes: bytes that the program has written but the kernel has not received yet.
/// It shows where the stream leads, which process reads there, the buffering mode, how old the bytes are at least, when
/// they would be written, and the bytes themselves. It also shows what the process is waiting for.
///
/// weir only reads. It does not stop or change the process. It knows the buffers of glibc, musl, libstdc++ and libc++
/// (also in static and stripped programs), CPython, Perl, Ruby, Tcl, OCaml, libweir, Rust's standard output and (with
/// debug information) BufWriter, and Go's bufio.
#[derive(clap::Args)]
#[command(override_usage = "weir peek [OPTIONS] PID...", after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-peek/1); - is standard output")))]
pub struct Args {
    /// Processes whose buffers to show
    #[arg(value_name = "PID", required = true, value_parser = parse_pid)]
    pids: Vec<u32>,

    /// The start of the process in clock ticks since boot, from `weir top`: another process with its number is left alone
    #[arg(long, value_name = "TICKS", hide = true)]
    start_ticks: Option<u64>,

    /// Include all descendants of the processes
    #[arg(long)]
    children: bool,

    /// Show all pending bytes, not only the first ones
    #[arg(long)]
    full: bool,

    /// With --full, read at most so many bytes of each process
    #[arg(long, value_name = "SIZE", requires = "full", default_value = "48M", value_parser = parse_nonzero_size)]
    limit: Size,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir peek 4711                      show what a silent process has buffered
  weir peek --full 4711               show all of it
  weir peek --children $(pgrep make)  include the processes that make started
  weir peek --json - 4711             for other programs

To write the bytes: weir flush PID.

Exit status:
  0  success
  1  a process could not be read; standard error says why
  2  wrong usage, or the file of --json cannot be created";

/// Runs `weir peek` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let mut output = match args.output.open_or_report() {
        Ok(output) => output,
        Err(status) => return status,
    };
    let (processes, failed) = peek_all(args);
    let screen = || screen(&processes, args.full, &stdout_style());
    output.finish(screen, &PeekDocument::new(&processes), failed)
}

/// Returns the buffers of all processes, and whether a process could not be read. A descendant that ended in the
/// meantime is no failure.
fn peek_all(args: &Args) -> (Vec<Peek>, bool) {
    let (mut processes, mut failed): (Vec<Peek>, bool) = (Vec::new(), false);
    let mut identities = Vec::new();
    let named: Vec<ProcessIdentity> =
        args.pids.iter().map(|pid| ProcessIdentity::started_at(*pid, args.start_ticks)).collect();
    for one in named {
        let descendants = if args.children { one.descendants() } else { Vec::new() };
        for process in std::iter::once(one).chain(descendants) {
            if processes.iter().any(|known| known.pid == process.pid()) {
                continue;
            }
            match weir_inspect::peek::peek(process, args.full, args.limit.0) {
                Ok(peek) => {
                    let restart = restart_command(&peek);
                    identities.push(process);
                    processes.push(Peek { restart: Some(restart), ..peek });
                }
                Err(error) if error.has_ended && process.pid() != one.pid() => {}
                Err(error) => {
                    eprintln_lossy!("weir: {error}");
                    failed = true;
                }
            }
        }
    }
    mark_copies(&mut processes, &fork_copies(&identities, &[]));
    (processes, failed)
}

/// Returns the command that starts the program of a process again, or why it is not known.
fn restart_command(peek: &Peek) -> RestartCommand {
    if proc::has_other_files(peek.pid) {
        return RestartCommand::Unknown("it has another root directory or other mounts");
    }
    let (exe, directory) = (proc::names(peek.pid).0, proc::directory(peek.pid));
    let argv = peek.command.iter().map(Untrusted::exact).collect();
    let others = start_directories(peek.pid);
    let program = StartedProgram { exe: exe.exact(), argv, directory: directory.as_deref(), others: &others };
    match program.command() {
        Ok((words, directory)) => RestartCommand::Known { words, directory: directory.map(text_of) },
        Err(reason) => RestartCommand::Unknown(reason),
    }
}
