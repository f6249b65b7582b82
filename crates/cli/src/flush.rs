//! `weir flush`: parses the command line, drains the processes, prints what was written.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_control::drain::{DrainTargets, DrainedProcess};
use weir_model::flush::{FlushDocument, FlushedProcess};
use weir_model::{Size, duration};
use weir_report::flush::{nothing_pending_line, pending_lines, written_lines};
use weir_sys::process_identity::ProcessIdentity;

use crate::console;
use crate::exit_status::FAILED;
use crate::output::{OutputFiles, OutputOptions};
use crate::signals::stop_flag_then_exit;
use crate::values::{parse_nonzero_duration, parse_nonzero_size, parse_pid};

/// Write the pending bytes of a running process now
///
/// weir does what fflush(3) in the program would do, at a moment when no thread is inside a stream. It writes the pending
/// bytes to the file, pipe or terminal of each stream; the program continues and does not write them again. weir knows
/// the streams of glibc, musl, libstdc++ and libc++ (also in static and stripped programs), CPython, Perl, Ruby, Tcl,
/// OCaml, libweir, Rust's standard output, and the bufio.Writers of Go.
///
/// If a pipe is full or a stream is locked, weir retries for the time of --wait. The program runs meanwhile.
#[derive(clap::Args)]
#[command(override_usage = "weir flush [OPTIONS] PID...", after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-flush/1); - is standard output")))]
#[command(mut_arg("json", |arg| arg.conflicts_with("every")))]
pub struct Args {
    /// Processes to flush
    #[arg(value_name = "PID", required = true, value_parser = parse_pid)]
    pids: Vec<u32>,

    /// Repeat at this interval, e.g. 1s, until the processes have ended or until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = parse_nonzero_duration)]
    every: Option<Duration>,

    /// The start of the process in clock ticks since boot, from `weir top`: another process with its number is left alone
    #[arg(long, value_name = "TICKS", hide = true)]
    start_ticks: Option<u64>,

    /// Include all descendants of the processes
    #[arg(long)]
    children: bool,

    /// How long to retry if the program is inside a stream or the reader is slow
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    wait: Duration,

    /// Read at most so many pending bytes of each process at once
    #[arg(long, value_name = "SIZE", default_value = "48M", value_parser = parse_nonzero_size)]
    limit: Size,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir flush 4711                      write its pending bytes now
  weir flush --every 1s 4711           keep writing them every second
  weir flush --children $(pgrep make)  include the processes that make started
  weir flush --wait 30s 4711           a busy program, or a slow reader

To see the bytes first: weir peek PID.
To start a program with a bounded delay: weir run --max-delay 100ms -- COMMAND

Exit status:
  0  no bytes are pending any more
  1  bytes are still pending, or a process could not be flushed; standard error
     says why
  2  wrong usage, or the file of --json cannot be created";

/// Runs `weir flush` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let stop = match stop_flag_then_exit() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(FAILED);
        }
    };
    let files = match args.output.open_or_report() {
        Ok(files) => files,
        Err(status) => return status,
    };
    let named = args.pids.iter().map(|pid| ProcessIdentity::started_at(*pid, args.start_ticks)).collect();
    let targets = DrainTargets { named, descendants: args.children, most: args.limit.0 };
    let well = match args.every {
        Some(interval) => flush_every(args, &targets, interval, &stop),
        None => flush_once(args, &targets, files, &stop),
    };
    if well { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

/// Returns false if bytes are still pending or an error was reported.
fn flush_once(args: &Args, targets: &DrainTargets, mut files: OutputFiles, stop: &AtomicBool) -> bool {
    let (mut well, mut processes) = (true, Vec::new());
    for process in targets.drain(args.wait, stop) {
        well &= print_process(&process, files.shows_screen());
        processes.push(process.flushed);
    }
    if let Err(error) = files.write_document(&FlushDocument::new(processes)) {
        eprintln_lossy!("weir: {error}");
        well = false;
    }
    well
}

/// Returns false if a named process cannot be flushed, or if standard output cannot be written, which is reported once.
fn flush_every(args: &Args, targets: &DrainTargets, interval: Duration, stop: &AtomicBool) -> bool {
    let shows_screen = !args.output.is_quiet();
    let (mut printed, mut screen) = (HashSet::new(), Ok(()));
    let print = |process: &FlushedProcess| {
        let result = print_streams(process, written_lines(process), shows_screen);
        if screen.is_ok() {
            report_error(&result);
            screen = result;
        }
        if printed.insert(process.pid) {
            print_unseen(process, shows_screen);
        }
    };
    let result = targets.drain_every(interval, args.wait, stop, print);
    report_error(&result);
    result.and(screen).is_ok()
}

fn report_error(result: &Result<(), String>) {
    if let Err(error) = result {
        eprintln_lossy!("weir: {error}");
    }
}

/// Prints the result for one process. Returns false if bytes are still pending or an error was reported.
fn print_process(process: &DrainedProcess, shows_screen: bool) -> bool {
    if process.failure.is_some() {
        let error = process.reportable_error();
        match error {
            Some(error) => eprintln_lossy!("weir: {error}"),
            None => print_unseen(&process.flushed, shows_screen),
        }
        return error.is_none();
    }
    let mut lines = written_lines(&process.flushed);
    if lines.is_empty() && process.named && !process.is_partial() {
        lines.push(nothing_pending_line(&process.flushed));
    }
    let result = print_streams(&process.flushed, lines, shows_screen);
    report_error(&result);
    print_unseen(&process.flushed, shows_screen);
    result.is_ok() && !process.is_partial()
}

/// Prints which buffers weir cannot read, so that silence means that nothing is pending.
fn print_unseen(process: &FlushedProcess, shows_screen: bool) {
    if shows_screen {
        process.unseen.iter().for_each(|reason| eprintln_lossy!("weir: {reason}"));
    }
}

/// Prints `lines` to standard output and the streams that are still pending to standard error. Returns the error of standard output.
fn print_streams(process: &FlushedProcess, lines: Vec<String>, shows_screen: bool) -> Result<(), String> {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    let printed = if shows_screen { console::print_screen(&text) } else { Ok(()) };
    pending_lines(process).iter().for_each(|line| eprintln_lossy!("weir: {line}"));
    printed
}
