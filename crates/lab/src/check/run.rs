//! Starts a solution, with a time limit, and looks at it while it runs.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::place::Place;
use super::{Wrong, wrong};
use crate::Error;

/// How long anything may take that has nothing to wait for.
const LIMIT: Duration = Duration::from_secs(10);
/// The same under a tracer that stops it at every call.
const TRACED_LIMIT: Duration = Duration::from_secs(40);
/// Between the pieces of an input that comes in pieces: each is read before the next is there.
const PAUSE: Duration = Duration::from_millis(30);

/// A start that is being prepared.
pub(super) struct Run<'p> {
    place: &'p Place<'p>,
    arguments: Vec<String>,
    input: Input,
    full: bool,
    shell: String,
    traced: Option<PathBuf>,
}

enum Input {
    File(Vec<u8>),
    Pieces(Vec<Vec<u8>>),
    Directory,
}

/// How it ended.
pub(super) struct Ended {
    pub status: ExitStatus,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub errors: String,
    pub elapsed: Duration,
}

/// A start that was made; killed when dropped.
pub(super) struct Running<'p> {
    place: &'p Place<'p>,
    child: Child,
    feeder: Option<JoinHandle<()>>,
    begun: Instant,
}

impl<'p> Run<'p> {
    pub fn new(place: &'p Place<'p>, arguments: &[&str]) -> Run<'p> {
        let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
        let input = Input::File(Vec::new());
        Run { place, arguments, input, full: false, shell: String::new(), traced: None }
    }

    /// Standard input is a file of these bytes.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Run<'p> {
        self.input = Input::File(bytes.into());
        self
    }

    /// Standard input is a pipe, through which these come with a pause behind each.
    pub fn pieces(mut self, pieces: &[&[u8]]) -> Run<'p> {
        self.input = Input::Pieces(pieces.iter().map(|piece| piece.to_vec()).collect());
        self
    }

    /// Standard input cannot be read: EISDIR.
    pub fn input_directory(mut self) -> Run<'p> {
        self.input = Input::Directory;
        self
    }

    /// Standard output is a full disk.
    pub fn out_is_full(mut self) -> Run<'p> {
        self.full = true;
        self
    }

    /// No file may grow beyond so many blocks of 512 bytes: the write that crosses it is short, the next one fails.
    pub fn files_of(mut self, blocks: u32) -> Run<'p> {
        self.shell = format!("trap '' XFSZ; ulimit -f {blocks}; ");
        self
    }

    /// It may have so many descriptors open.
    pub fn descriptors(mut self, most: u32) -> Run<'p> {
        self.shell = format!("ulimit -n {most}; ");
        self
    }

    /// Under weir's own tracer, which leaves its result there: the engine that everybody may use, and that starts fastest.
    pub fn traced(mut self, result: PathBuf) -> Run<'p> {
        self.traced = Some(result);
        self
    }

    /// Runs it to its end.
    pub fn done(self) -> Result<Ended, Wrong> {
        let limit = if self.traced.is_some() { TRACED_LIMIT } else { LIMIT };
        self.start()?.end(limit)
    }

    /// Starts it.
    pub fn start(self) -> Result<Running<'p>, Wrong> {
        let place = self.place;
        let mut command = self.command();
        let out = if self.full { "/dev/full".into() } else { place.beside("out") };
        command
            .current_dir(place.here())
            .env_remove("PYTHONUNBUFFERED")
            .stdin(self.stdin()?)
            .stdout(written(&out)?)
            .stderr(written(&place.beside("errors"))?)
            .process_group(0);
        let program = || place.solution.program.clone();
        let spawned = command.spawn();
        let mut child = spawned.map_err(|source| Error::File { path: program(), call: "execve", source })?;
        let feeder = match (self.input, child.stdin.take()) {
            (Input::Pieces(pieces), Some(mut pipe)) => Some(thread::spawn(move || feed(&pieces, &mut pipe))),
            _ => None,
        };
        Ok(Running { place, child, feeder, begun: Instant::now() })
    }

    fn command(&self) -> Command {
        let program = &self.place.solution.program;
        if let Some(result) = &self.traced {
            let mut command = Command::new(self.place.solution.weir);
            command
                .args(["trace", "--engine", "ptrace", "--exact", "--quiet", "--json"])
                .arg(result)
                .arg("--")
                .arg(program);
            command.args(&self.arguments);
            return command;
        }
        if self.shell.is_empty() {
            let mut command = Command::new(program);
            command.args(&self.arguments);
            return command;
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{}exec \"$0\" \"$@\"", self.shell)).arg(program).args(&self.arguments);
        command
    }

    fn stdin(&self) -> Result<Stdio, Error> {
        let path = match &self.input {
            Input::Pieces(_) => return Ok(Stdio::piped()),
            Input::File(_) => self.place.beside("input"),
            Input::Directory => self.place.here(),
        };
        let failed = |source| Error::File { path: path.clone(), call: "open", source };
        if let Input::File(bytes) = &self.input {
            fs::write(&path, bytes).map_err(failed)?;
        }
        Ok(File::open(&path).map_err(failed)?.into())
    }
}

fn written(path: &Path) -> Result<File, Error> {
    let opened = File::options().write(true).create(true).truncate(true).open(path);
    opened.map_err(|source| Error::File { path: path.into(), call: "open", source })
}

/// A solution that does not read to the end is judged by what it then does, not by the broken pipe.
fn feed(pieces: &[Vec<u8>], pipe: &mut impl Write) {
    for piece in pieces {
        if pipe.write_all(piece).is_err() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

impl Running<'_> {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something is so; false when the time is over.
    pub fn until(&mut self, limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        while !is_so() {
            if start.elapsed() > limit || self.place.solution.stop.load(Ordering::Relaxed) {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Waits for its end.
    pub fn end(mut self, limit: Duration) -> Result<Ended, Wrong> {
        let (mut status, start) = (None, Instant::now());
        while status.is_none() && start.elapsed() < limit && !self.place.solution.stop.load(Ordering::Relaxed)
        {
            thread::sleep(Duration::from_millis(1));
            status = self.child.try_wait().unwrap_or(None);
        }
        let elapsed = self.begun.elapsed();
        let Some(status) = status else { return wrong(format!("it was not at its end after {limit:?}")) };
        // Drop has the process group killed, and the leader waited for: what is left now is not the leader.
        if test_kill_process_group(Pid::from_child(&self.child)).is_ok() {
            return wrong("it ended, but left a process of its own running");
        }
        let read = |name| fs::read(self.place.beside(name)).unwrap_or_default();
        let errors = String::from_utf8_lossy(&read("errors")).trim().to_string();
        Ok(Ended { status, out: read("out"), errors, elapsed })
    }

    /// kill -9, to all of it.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _none_left = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _gone = self.child.wait();
        if let Some(feeder) = self.feeder.take() {
            let _fed = feeder.join();
        }
    }
}

impl Ended {
    /// It said that all went well.
    pub fn well(self) -> Result<Ended, Wrong> {
        match self.status.success() {
            true => Ok(self),
            false => wrong(format!("it ended with {}: {}", how(self.status), self.last_words())),
        }
    }

    /// It said that something went wrong, and what; `trouble` is what that was.
    pub fn failed(self, trouble: &str) -> Result<Ended, Wrong> {
        if self.status.success() {
            return wrong(format!("{trouble}: it ended with status 0, as if all were well"));
        }
        if self.status.signal().is_some() {
            return wrong(format!("{trouble}: it ended with {}", how(self.status)));
        }
        if self.errors.is_empty() {
            return wrong(format!(
                "{trouble}: it ended with {}, but said nothing on standard error",
                how(self.status)
            ));
        }
        Ok(self)
    }

    fn last_words(&self) -> &str {
        self.errors.lines().last().unwrap_or("it said nothing")
    }
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => {
            let name = Signal::from_named_raw(signal).map(|signal| format!(" ({signal:?})"));
            format!("signal {signal}{}", name.unwrap_or_default().replace("Signal::", ""))
        }
        None => format!("status {}", status.code().unwrap_or(-1)),
    }
}
