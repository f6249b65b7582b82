//! Starts a command with the standard streams that a case wants, and waits for it with a time limit.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::place::{give, user};
use super::set::Out;

/// No program of the set needs longer, not even under a slow tracer.
const LIMIT: Duration = Duration::from_secs(20);

/// A terminal takes 4 KiB, shows them, and takes the next: a few megabytes a second.
const TERMINAL_PAUSE: Duration = Duration::from_micros(500);

/// Where the streams lead.
pub struct Streams {
    pub stdin: Option<PathBuf>,
    pub stdout: Out,
    /// The file for [`Out::File`].
    pub out: PathBuf,
    pub errors: PathBuf,
}

/// How a command ended.
pub struct Ended {
    /// As a shell says it: 128 + N for a signal.
    pub status: i32,
    pub elapsed: Duration,
}

/// Reads everything, at a pace. Ends when the last writer has gone (a terminal says EIO then).
fn drain(mut from: impl Read + Send + 'static, pause: Duration) {
    thread::spawn(move || {
        let mut block = [0; 4096];
        while from.read(&mut block).is_ok_and(|got| got > 0) {
            thread::sleep(pause);
        }
    });
}

/// Both ends of a new pseudo-terminal.
fn terminal() -> io::Result<(File, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((ours.into(), theirs.into()))
}

/// A new file of whoever runs the program, who may open it once more.
fn created(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    user().map_or(Ok(()), |user| give(path, user)).map(|()| file)
}

/// Starts it; the command is consumed so that no descriptor of the other side stays open here.
fn spawn(mut command: Command, streams: &Streams) -> io::Result<Child> {
    command.stdin(match &streams.stdin {
        Some(path) => File::open(path)?.into(),
        None => Stdio::null(),
    });
    command.stderr(created(&streams.errors)?).process_group(0);
    match streams.stdout {
        Out::File => command.stdout(created(&streams.out)?).spawn(),
        Out::Null => command.stdout(Stdio::null()).spawn(),
        Out::Pipe => {
            let mut child = command.stdout(Stdio::piped()).spawn()?;
            drain(child.stdout.take().expect("a pipe"), Duration::ZERO);
            Ok(child)
        }
        Out::Terminal => {
            let (ours, theirs) = terminal()?;
            let child = command.stdout(theirs).spawn();
            drain(ours, TERMINAL_PAUSE);
            child
        }
    }
}

/// Runs it to its end, or to the limit's.
pub fn finish(command: Command, streams: &Streams) -> Result<Ended, String> {
    let program = format!("{command:?}");
    let start = Instant::now();
    let mut child = spawn(command, streams).map_err(|error| format!("{program}: {error}"))?;
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            return Ok(Ended { status, elapsed: start.elapsed() });
        }
        if start.elapsed() > LIMIT {
            let group = Pid::from_child(&child);
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return Err(format!("{program}: not at its end after {LIMIT:?}; {}", last_words(streams)));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The end of what it said on standard error.
pub fn last_words(streams: &Streams) -> String {
    let said = fs::read(&streams.errors).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<_> = said.trim_end().lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
