//! Reads a pipe or a file until the command has ended, with the time of the first and the last bytes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::set::{Cell, Mode};
use super::{Arrival, Tool, command};

/// The time between `hi` and `end` in every program.
const PAUSE: Duration = Duration::from_millis(1200);
/// `hi` is timely if it arrives at least this long before `end`.
const AHEAD: Duration = Duration::from_millis(500);
/// The limit for a run, after which it is killed.
const LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs a cell's program under a tool.
pub fn run(cell: &Cell, tool: Tool) -> Arrival {
    let sink = tempfile::NamedTempFile::new_in(&cell.program.dir).expect("a file");
    let mut child = start(cell, tool, sink.path());
    let feeder = cell.program.filter.then(|| feed(child.stdin.take().expect("a pipe")));
    let received = match child.stdout.take() {
        Some(mut pipe) => watch(|| poll_read(&mut pipe), || true),
        None => {
            let mut file = File::open(sink.path()).expect("the sink");
            watch(|| read(&mut file), || child.try_wait().is_ok_and(|status| status.is_none()))
        }
    };
    let _gone = child.kill();
    let _status = child.wait();
    feeder.map(|feeder| feeder.join());
    judge(cell.mode, &received)
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

/// The bytes of a run, and when the first and the last arrived.
#[derive(Default)]
struct Received {
    first: Option<Instant>,
    last: Option<Instant>,
    bytes: Vec<u8>,
}

/// Collects bytes until the end. `next` returns new bytes, or None at the end of a pipe; a file ends when the command
/// does.
fn watch(mut next: impl FnMut() -> Option<Vec<u8>>, mut runs: impl FnMut() -> bool) -> Received {
    let mut received = Received::default();
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        // Checked before the read, so that bytes from just before the end are not missed.
        let running = runs();
        let Some(bytes) = next() else { break };
        let now = Instant::now();
        received.bytes.extend(&bytes);
        if !bytes.is_empty() {
            received.first.get_or_insert(now);
            received.last = Some(now);
        } else if !running {
            break;
        } else {
            thread::sleep(POLL_INTERVAL);
        }
    }
    received
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

/// Judges a run. Ignores the \r that unbuffer's terminal adds before each \n.
fn judge(mode: Mode, received: &Received) -> Arrival {
    let text = String::from_utf8_lossy(&received.bytes).replace('\r', "");
    let (hi, end) = (text.contains("hi"), text.contains("end"));
    let ahead = received.first.zip(received.last).is_some_and(|(first, last)| last - first > AHEAD);
    match mode {
        Mode::Kill if hi => Arrival::Timely,
        Mode::Kill => Arrival::Lost,
        _ if hi && end && ahead => Arrival::Timely,
        _ if hi && end => Arrival::Late,
        _ if hi || end => Arrival::Lost,
        _ => Arrival::DoesNotStart,
    }
}
