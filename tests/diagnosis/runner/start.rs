//! Starts a command with the standard streams that a case wants, and waits for it with a time limit.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::set::StdoutKind;
use super::workspace::{chown_all, user};

/// The time limit of a command, which only finds those that hang: no program of the set takes a tenth of it on an idle
/// machine, even under a slow tracer.
const LIMIT: Duration = Duration::from_secs(60);

/// The pause after each 4 KiB that the terminal takes, which makes it as slow as a real one: a few megabytes per second.
const TERMINAL_PAUSE: Duration = Duration::from_micros(500);

/// The standard streams of a command.
pub struct StdStreams {
    pub stdin: Option<PathBuf>,
    pub stdout: StdoutKind,
    /// The file that takes standard output, or what was read from the pipe or terminal.
    pub out: PathBuf,
    pub errors: PathBuf,
}

/// The exit of a command and its duration.
pub struct CommandResult {
    /// Exit status as in a shell: 128 + N for a signal.
    pub status: i32,
    pub elapsed: Duration,
}

/// Reads everything with a pause after each block, until the last writer closes its end (a terminal returns EIO then).
/// What it reads goes to a file at once.
fn drain(mut from: impl Read + Send + 'static, pause: Duration, mut to: File) {
    thread::spawn(move || {
        let mut block = [0; 4096];
        while let Ok(got) = from.read(&mut block).map(|got| &block[..got]) {
            if got.is_empty() || to.write_all(got).is_err() {
                break;
            }
            if !pause.is_zero() {
                thread::sleep(pause);
            }
        }
    });
}

/// Returns both ends of a new pseudo-terminal.
fn terminal() -> io::Result<(File, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((ours.into(), theirs.into()))
}

/// Creates a file that belongs to the user who runs the program, so that the program may open it again.
fn created(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    user().map_or(Ok(()), |user| chown_all(path, user)).map(|()| file)
}

/// Starts a command. It is consumed, so that no descriptor of the child's side stays open here.
fn spawn(mut command: Command, streams: &StdStreams) -> io::Result<Child> {
    command.stdin(match &streams.stdin {
        Some(path) => File::open(path)?.into(),
        None => Stdio::null(),
    });
    command.stderr(created(&streams.errors)?).process_group(0);
    match streams.stdout {
        StdoutKind::File => command.stdout(created(&streams.out)?).spawn(),
        StdoutKind::Null => command.stdout(Stdio::null()).spawn(),
        StdoutKind::Pipe => {
            let mut child = command.stdout(Stdio::piped()).spawn()?;
            drain(child.stdout.take().expect("a pipe"), Duration::ZERO, created(&streams.out)?);
            Ok(child)
        }
        StdoutKind::Terminal => {
            let (ours, theirs) = terminal()?;
            let child = command.stdout(theirs).spawn();
            drain(ours, TERMINAL_PAUSE, created(&streams.out)?);
            child
        }
    }
}

/// Runs a command to its end and returns its exit. Kills it and fails after [`LIMIT`].
pub fn finish(command: Command, streams: &StdStreams) -> Result<CommandResult, String> {
    finish_with(command, streams, &mut || {})
}

/// As [`finish`], and calls a function every millisecond.
pub fn finish_with(
    command: Command,
    streams: &StdStreams,
    each: &mut dyn FnMut(),
) -> Result<CommandResult, String> {
    let program = format!("{command:?}");
    let start = Instant::now();
    let mut child = spawn(command, streams).map_err(|error| format!("{program}: {error}"))?;
    loop {
        each();
        if let Some(status) = child.try_wait().expect("our own child") {
            let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            return Ok(CommandResult { status, elapsed: start.elapsed() });
        }
        if start.elapsed() > LIMIT {
            let group = Pid::from_child(&child);
            let waits = waits(group);
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return Err(format!(
                "{program}: still running after {LIMIT:?}; {waits}; {}",
                last_errors(streams)
            ));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns what each thread of a process group waits for: its thread ID, name, state, kernel function and system call.
fn waits(group: Pid) -> String {
    let numbers = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.file_name().is_some_and(|name| name.as_bytes()[0].is_ascii_digit()))
            .collect()
    };
    let threads = numbers(Path::new("/proc")).into_iter().flat_map(|process| numbers(&process.join("task")));
    let of_thread = |thread: PathBuf| {
        let text = |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
        let stat = text("stat");
        // PID (NAME) STATE PPID PGRP …; the name may contain spaces and parentheses.
        let (head, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = fields.split(' ').collect();
        let ours = fields.get(2)?.parse() == Ok(group.as_raw_nonzero().get());
        ours.then(|| format!("{head}) {} {} [{}]", fields[0], text("wchan"), text("syscall").trim_end()))
    };
    threads.filter_map(of_thread).collect::<Vec<_>>().join(" | ")
}

/// Returns the last lines of a command's standard error, and what it said of a panic.
pub fn last_errors(streams: &StdStreams) -> String {
    let failure = fs::read(&streams.errors).unwrap_or_default();
    let failure = String::from_utf8_lossy(&failure);
    let lines: Vec<_> = failure.trim_end().lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let first = panic.unwrap_or(lines.len().saturating_sub(3));
    lines[first..].iter().take(40).copied().collect::<Vec<_>>().join(" | ")
}
