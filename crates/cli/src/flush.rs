//! `weir flush`: the command line, and what is said of what was written out.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_control::drain::{DrainError, DrainResult, ProcessDrain};
use weir_model::flush::{FlushDocument, FlushedProcess, FlushedStream};
use weir_model::{Size, duration};
use weir_sys::proc;
use weir_sys::process_access::AccessProblem;

use crate::console;
use crate::exit_status::{FAILED, USAGE};
use crate::output::{OutputFiles, OutputOptions};
use crate::signals::stop_flag;
use crate::values::parse_pid;

/// Write out now what a running process holds in its buffers
///
/// As if the program had called fflush, at a moment when none of its threads is inside a stream: what waits in the
/// streams of glibc, musl (static and stripped programs too), CPython, Perl, libweir and Rust's standard output goes
/// where it was meant to go, and the program goes on and writes none of it again. A full pipe or a lock that is held
/// is waited for as long as --wait says, never with the program stopped.
#[derive(clap::Args)]
#[command(override_usage = "weir flush [OPTIONS] PID...", after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write what was done as JSON (schema weir-flush/1); - is standard output")))]
#[command(mut_arg("json", |arg| arg.conflicts_with("every")))]
#[command(mut_arg("quiet", |arg| arg.help("Say nothing but errors")))]
pub struct Args {
    /// Processes
    #[arg(value_name = "PID", required = true, value_parser = parse_pid)]
    pids: Vec<u32>,

    /// Do it again and again, e.g. every 1s, until the processes have ended or Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    every: Option<Duration>,

    /// Their children too, and theirs
    #[arg(long)]
    children: bool,

    /// How long to try when the program is inside a stream, or who reads it is late
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    wait: Duration,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir flush 4711                      out with it, now
  weir flush --every 1s 4711           no byte of it waits longer than a second from now on
  weir flush --children $(pgrep make)  a process and all that it started
  weir flush --wait 30s 4711           a program that is busy, or a slow reader

To see what waits: weir peek PID. To start a program so that nothing waits long: weir run --max-delay 100ms -- ...

Exit status: 0 nothing waits any more; 1 something still waits, or a process could not be reached: standard error
says why; 2 wrong usage.";

fn parse_time(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("0: give it at least some time, such as 1s".into()),
        time => Ok(time),
    }
}

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    let stop = match stop_flag() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(FAILED);
        }
    };
    let output = match args.output.open() {
        Ok(output) => output,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(USAGE);
        }
    };
    match args.every {
        Some(every) => repeat(args, every, &stop),
        None => once(args, output, &stop),
    }
}

/// The processes that are meant, as they are now, and whether each was named.
fn meant(args: &Args) -> Vec<(u32, bool)> {
    let mut all: Vec<(u32, bool)> = args.pids.iter().map(|pid| (*pid, true)).collect();
    if args.children {
        for child in args.pids.iter().flat_map(|pid| proc::descendants(*pid)) {
            if !all.iter().any(|one| one.0 == child) {
                all.push((child, false));
            }
        }
    }
    all
}

fn once(args: &Args, mut output: OutputFiles, stop: &AtomicBool) -> ExitCode {
    let (mut failed, mut processes) = (false, Vec::new());
    let quiet = !output.shows_screen();
    for (pid, named) in meant(args) {
        let name = proc::names(pid).1;
        let flushed = ProcessDrain::of(pid).and_then(|mut drain| drain.flush(args.wait, stop));
        failed |= match &flushed {
            Ok(flushed) => tell(pid, &name, flushed, named, quiet),
            Err(error) => tell_error(error, named),
        };
        processes.push(process(pid, name, flushed));
    }
    let document = FlushDocument::new(processes);
    if let Err(error) = output.write_json(&document) {
        eprintln_lossy!("weir: {error}");
        failed = true;
    }
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// Until all that were named have ended; what is in the way at one time may be out of it at the next.
fn repeat(args: &Args, every: Duration, stop: &AtomicBool) -> ExitCode {
    let (mut any, mut said) = (false, String::new());
    while !stop.load(Ordering::Relaxed) {
        let next = Instant::now() + every;
        let mut alive = false;
        for (pid, named) in meant(args) {
            let name = proc::names(pid).1;
            match ProcessDrain::of(pid).and_then(|mut drain| drain.flush(args.wait.min(every), stop)) {
                Ok(flushed) => {
                    alive |= named;
                    let fresh = flushed.streams.iter().any(|stream| stream.written_bytes > 0);
                    let text = left(&name, pid, &flushed).join("\n");
                    if fresh || text != said {
                        tell(pid, &name, &flushed, false, args.output.is_quiet());
                        said = text;
                    }
                }
                Err(DrainError::AccessProblem(AccessProblem::Gone(_) | AccessProblem::Zombie { .. }))
                    if any => {}
                Err(error) if named && !any => {
                    tell_error(&error, true);
                    return ExitCode::from(FAILED);
                }
                Err(_) => alive |= named && proc::exists(pid),
            }
        }
        any = true;
        if !alive {
            break;
        }
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
    }
    ExitCode::SUCCESS
}

/// True: something still waits.
fn tell(pid: u32, name: &str, flushed: &DrainResult, named: bool, quiet: bool) -> bool {
    let mut text = String::new();
    for stream in flushed.streams.iter().filter(|stream| stream.written_bytes > 0) {
        let (bytes, place) = (Size(stream.written_bytes), place(stream));
        text += &format!("{name} ({pid}): {bytes} written out to {place}\n");
    }
    if text.is_empty() && named && !flushed.is_partial() {
        let where_seen = if flushed.unseen.is_empty() { "" } else { " in the streams that weir can read" };
        text = format!("{name} ({pid}): nothing waits{where_seen}\n");
    }
    if !quiet && console::print(&text).is_err() {
        return true;
    }
    for line in left(name, pid, flushed) {
        eprintln_lossy!("weir: {line}");
    }
    if named && !quiet {
        flushed.unseen.iter().for_each(|one| eprintln_lossy!("weir: {one}"));
    }
    flushed.is_partial()
}

fn left(name: &str, pid: u32, flushed: &DrainResult) -> Vec<String> {
    let waiting = flushed.streams.iter().filter(|stream| stream.left_bytes > 0);
    let line = |stream: &FlushedStream| {
        let why = stream.why.as_deref().unwrap_or("new bytes came");
        let (bytes, place) = (Size(stream.left_bytes), place(stream));
        format!("{name} ({pid}): {bytes} for {place} still wait: {why}")
    };
    waiting.map(line).collect()
}

fn place(stream: &FlushedStream) -> String {
    format!("descriptor {} ({})", stream.fd, stream.path)
}

/// True: it counts. A child that ended, or is of a kind that weir does not know, does not.
fn tell_error(error: &DrainError, named: bool) -> bool {
    let counts = named
        || !matches!(
            error,
            DrainError::Unknown { .. }
                | DrainError::AccessProblem(AccessProblem::Gone(_) | AccessProblem::Zombie { .. })
        );
    if counts {
        eprintln_lossy!("weir: {error}");
    }
    counts
}

fn process(pid: u32, comm: String, flushed: Result<DrainResult, DrainError>) -> FlushedProcess {
    match flushed {
        Ok(flushed) => {
            FlushedProcess { pid, comm, streams: flushed.streams, unseen: flushed.unseen, error: None }
        }
        Err(error) => FlushedProcess {
            pid,
            comm,
            streams: Vec::new(),
            unseen: Vec::new(),
            error: Some(error.to_string()),
        },
    }
}
