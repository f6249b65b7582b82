//! Watches a pipe or a file until the command has ended.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::set::{Cell, Mode};
use super::{Result, Tool, command};

/// What a program sleeps between `hi` and `end`.
const PAUSE: Duration = Duration::from_millis(1200);
/// `hi` is timely when it comes so long before `end`.
const AHEAD: Duration = Duration::from_millis(500);
/// Nothing takes longer.
const MOST: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// Runs a cell's program under a tool.
pub fn run(cell: &Cell, tool: Tool) -> Result {
    let sink = tempfile::NamedTempFile::new_in(&cell.program.dir).expect("a file");
    let mut child = start(cell, tool, sink.path());
    let feeder = cell.program.filter.then(|| feed(child.stdin.take().expect("a pipe")));
    let seen = match child.stdout.take() {
        Some(mut pipe) => watch(|| poll_read(&mut pipe), || true),
        None => {
            let mut file = File::open(sink.path()).expect("the sink");
            watch(|| read(&mut file), || child.try_wait().is_ok_and(|status| status.is_none()))
        }
    };
    let _gone = child.kill();
    let _status = child.wait();
    feeder.map(|feeder| feeder.join());
    judge(cell.mode, &seen)
}

fn start(cell: &Cell, tool: Tool, sink: &Path) -> Child {
    let out = match cell.file {
        true => Stdio::from(File::options().append(true).open(sink).expect("the sink")),
        false => Stdio::piped(),
    };
    let input = if cell.program.filter { Stdio::piped() } else { Stdio::null() };
    let mut shell = Command::new("sh");
    shell.args(["-c", &command(cell, tool)]).current_dir(&cell.program.dir);
    shell.env_remove("PYTHONUNBUFFERED").stdin(input).stdout(out).stderr(Stdio::null());
    shell.spawn().expect("sh starts")
}

fn feed(mut input: impl Write + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let _gone = input.write_all(b"hi\n");
        thread::sleep(PAUSE);
        let _gone = input.write_all(b"end\n");
    })
}

/// When `hi` was there, when all was, and what came.
#[derive(Default)]
struct Seen {
    first: Option<Instant>,
    last: Option<Instant>,
    bytes: Vec<u8>,
}

/// `next` gives new bytes, or None at the end of a pipe; a file has none and ends with the command.
fn watch(mut next: impl FnMut() -> Option<Vec<u8>>, mut runs: impl FnMut() -> bool) -> Seen {
    let mut seen = Seen::default();
    let begun = Instant::now();
    while begun.elapsed() < MOST {
        // Asked first: what was written before the end is read after it.
        let running = runs();
        let Some(bytes) = next() else { break };
        let now = Instant::now();
        seen.bytes.extend(&bytes);
        if !bytes.is_empty() {
            seen.first.get_or_insert(now);
            seen.last = Some(now);
        } else if !running {
            break;
        } else {
            thread::sleep(LOOK);
        }
    }
    seen
}

fn poll_read(pipe: &mut (impl Read + AsFd)) -> Option<Vec<u8>> {
    let mut polled = [rustix::event::PollFd::new(pipe, rustix::event::PollFlags::IN)];
    let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    match rustix::event::poll(&mut polled, Some(&none)) {
        Ok(1..) => Some(read(pipe)?).filter(|bytes| !bytes.is_empty()),
        _ => Some(Vec::new()),
    }
}

fn read(from: &mut impl Read) -> Option<Vec<u8>> {
    let mut buffer = [0; 4096];
    let read = from.read(&mut buffer).ok()?;
    Some(buffer[..read].to_vec())
}

/// unbuffer's terminal makes \r\n of \n; that alone is not held against it here.
fn judge(mode: Mode, seen: &Seen) -> Result {
    let text = String::from_utf8_lossy(&seen.bytes).replace('\r', "");
    let (hi, end) = (text.contains("hi"), text.contains("end"));
    let ahead = seen.first.zip(seen.last).is_some_and(|(first, last)| last - first > AHEAD);
    match mode {
        Mode::Kill if hi => Result::Timely,
        Mode::Kill => Result::Lost,
        _ if hi && end && ahead => Result::Timely,
        _ if hi && end => Result::Late,
        _ if hi || end => Result::Lost,
        _ => Result::DoesNotStart,
    }
}
