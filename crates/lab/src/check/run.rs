//! Starts a solution with a time limit and observes it while it runs.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, prlimit, test_kill_process_group,
};
use weir_sys::proc;

use super::check_directory::CheckDirectory;
use super::{CheckFailure, wrong};
use crate::Error;

/// The time limit of a run that does not wait for anything.
const LIMIT: Duration = Duration::from_secs(10);
/// The time limit under a tracer that stops the solution at every call.
const TRACED_LIMIT: Duration = Duration::from_secs(40);
/// The time that the children of a solution have to end after it. A killed one needs a processor to end.
const LAST_CHILD_LIMIT: Duration = Duration::from_secs(5);
/// The pause between two pieces of input, so that the solution reads one before the next is written.
const PAUSE: Duration = Duration::from_millis(30);

/// The most bytes in a file of a solution; the exercises need 1 MB. A solution that never stops writing must not fill the disk
/// before its time limit.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// A run of a solution, not yet started.
pub(super) struct SolutionRun<'p> {
    dir: &'p CheckDirectory<'p>,
    arguments: Vec<String>,
    input: Input,
    full: bool,
    shell: String,
    /// The shell sets the limit of the file size.
    limits_files: bool,
    traced: Option<PathBuf>,
}

enum Input {
    File(Vec<u8>),
    Pieces(Vec<Vec<u8>>),
    Directory,
}

/// A run that has ended.
pub(super) struct SolutionExit {
    pub status: ExitStatus,
    /// The bytes of standard output.
    pub out: Vec<u8>,
    /// The text of standard error.
    pub errors: String,
    pub elapsed: Duration,
}

/// A running solution. Its process group is killed when it is dropped.
pub(super) struct RunningSolution<'p> {
    dir: &'p CheckDirectory<'p>,
    child: Child,
    feeder: Option<JoinHandle<()>>,
    started: Instant,
}

impl<'p> SolutionRun<'p> {
    pub fn new(dir: &'p CheckDirectory<'p>, arguments: &[&str]) -> SolutionRun<'p> {
        let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
        let input = Input::File(Vec::new());
        let shell = String::new();
        SolutionRun { dir, arguments, input, full: false, shell, limits_files: false, traced: None }
    }

    /// Makes standard input a file of these bytes.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> SolutionRun<'p> {
        self.input = Input::File(bytes.into());
        self
    }

    /// Makes standard input a pipe. The pieces are written to it with a pause after each.
    pub fn pieces(mut self, pieces: &[&[u8]]) -> SolutionRun<'p> {
        self.input = Input::Pieces(pieces.iter().map(|piece| piece.to_vec()).collect());
        self
    }

    /// Makes standard input a directory: read(2) fails with EISDIR.
    pub fn input_directory(mut self) -> SolutionRun<'p> {
        self.input = Input::Directory;
        self
    }

    /// Makes standard output /dev/full: write(2) fails with ENOSPC.
    pub fn out_is_full(mut self) -> SolutionRun<'p> {
        self.full = true;
        self
    }

    /// Limits files to `blocks` blocks of 512 bytes. The write that crosses the limit is short, the next one fails.
    pub fn files_of(mut self, blocks: u32) -> SolutionRun<'p> {
        self.shell = format!("trap '' XFSZ; ulimit -f {blocks}; ");
        self.limits_files = true;
        self
    }

    /// Limits the number of open descriptors.
    pub fn descriptors(mut self, limit: u32) -> SolutionRun<'p> {
        self.shell = format!("ulimit -n {limit}; ");
        self
    }

    /// Runs under `weir trace`, which writes its document to `result`. The ptrace backend needs no privilege and starts
    /// fastest.
    pub fn traced(mut self, result: PathBuf) -> SolutionRun<'p> {
        self.traced = Some(result);
        self
    }

    /// Runs the solution until it ends.
    pub fn done(self) -> Result<SolutionExit, CheckFailure> {
        let limit = if self.traced.is_some() { TRACED_LIMIT } else { LIMIT };
        self.start()?.end(limit)
    }

    /// Starts the solution in its own process group.
    pub fn start(self) -> Result<RunningSolution<'p>, CheckFailure> {
        let dir = self.dir;
        let mut command = self.command();
        let out = if self.full { "/dev/full".into() } else { dir.beside("out") };
        command
            .current_dir(dir.path())
            .env_remove("PYTHONUNBUFFERED")
            .stdin(self.stdin()?)
            .stdout(written(&out)?)
            .stderr(written(&dir.beside("errors"))?)
            .process_group(0);
        let program = || dir.solution.program.clone();
        let spawned = command.spawn();
        let mut child = spawned.map_err(|source| Error::File { path: program(), call: "execve", source })?;
        if !self.limits_files {
            limit_files(&child);
        }
        let feeder = match (self.input, child.stdin.take()) {
            (Input::Pieces(pieces), Some(mut pipe)) => Some(thread::spawn(move || feed(&pieces, &mut pipe))),
            _ => None,
        };
        Ok(RunningSolution { dir, child, feeder, started: Instant::now() })
    }

    fn command(&self) -> Command {
        let program = &self.dir.solution.program;
        if let Some(result) = &self.traced {
            let mut command = Command::new(self.dir.solution.weir);
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
            Input::File(_) => self.dir.beside("input"),
            Input::Directory => self.dir.path(),
        };
        let failed = |source| Error::File { path: path.clone(), call: "open", source };
        if let Input::File(bytes) = &self.input {
            fs::write(&path, bytes).map_err(failed)?;
        }
        Ok(File::open(&path).map_err(failed)?.into())
    }
}

/// Lowers the limit of the file size of a child and of those that it starts. A child that has ended needs none.
fn limit_files(child: &Child) {
    let own = getrlimit(Resource::Fsize);
    let current = own.current.map_or(MAX_FILE_BYTES, |bytes| bytes.min(MAX_FILE_BYTES));
    let limit = Rlimit { current: Some(current), maximum: own.maximum };
    let _ended = prlimit(Some(Pid::from_child(child)), Resource::Fsize, limit);
}

fn written(path: &Path) -> Result<File, Error> {
    let opened = File::options().write(true).create(true).truncate(true).open(path);
    opened.map_err(|source| Error::File { path: path.into(), call: "open", source })
}

/// Writes the pieces to the solution's standard input. A broken pipe is no failure: the solution need not read all.
fn feed(pieces: &[Vec<u8>], pipe: &mut impl Write) {
    for piece in pieces {
        if pipe.write_all(piece).is_err() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// A time limit from now on. On a busy machine it does not contain the time in which the process waits for a processor.
struct TimeLimit {
    limit: Duration,
    start: Instant,
    pid: Option<u32>,
    queued_before: Duration,
}

impl TimeLimit {
    fn new(limit: Duration, pid: Option<u32>) -> TimeLimit {
        let queued_before = pid.and_then(proc::time_in_queue).unwrap_or_default();
        TimeLimit { limit, start: Instant::now(), pid, queued_before }
    }

    fn is_over(&self) -> bool {
        let queued = || {
            let now = self.pid.and_then(proc::time_in_queue).unwrap_or_default();
            now.saturating_sub(self.queued_before)
        };
        let elapsed = self.start.elapsed();
        elapsed > self.limit && elapsed.saturating_sub(queued()) > self.limit
    }
}

impl RunningSolution<'_> {
    /// Returns the PID of the solution.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the condition holds. Returns false after the time limit.
    pub fn until(&mut self, limit: Duration, condition: impl FnMut() -> bool) -> bool {
        let limit = TimeLimit::new(limit, Some(self.pid()));
        self.until_within(&limit, condition)
    }

    fn until_within(&self, limit: &TimeLimit, mut condition: impl FnMut() -> bool) -> bool {
        while !condition() {
            if limit.is_over() || self.dir.solution.stop.load(Ordering::Relaxed) {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Waits for the solution to end. Fails after the time limit.
    pub fn end(mut self, limit: Duration) -> Result<SolutionExit, CheckFailure> {
        let (mut status, time_limit) = (None, TimeLimit::new(limit, Some(self.pid())));
        while status.is_none() && !time_limit.is_over() && !self.dir.solution.stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
            status = self.child.try_wait().unwrap_or(None);
        }
        let elapsed = self.started.elapsed();
        let Some(status) = status else { return wrong(format!("it still runs after {limit:?}")) };
        // The leader has been waited for, so the process group that is killed on drop no longer contains it.
        let group = Pid::from_child(&self.child);
        let last_child_limit = TimeLimit::new(LAST_CHILD_LIMIT, None);
        if !self.until_within(&last_child_limit, || !has_living_member(group)) {
            return wrong("it ended, but a process that it started still runs");
        }
        let read = |name| fs::read(self.dir.beside(name)).unwrap_or_default();
        let errors = String::from_utf8_lossy(&read("errors")).trim().to_string();
        Ok(SolutionExit { status, out: read("out"), errors, elapsed })
    }

    /// Kills the process group with SIGKILL.
    pub fn kill(self) {
        drop(self);
    }
}

/// Returns whether a process of the group has not ended. An ended one stays in its group until its parent has waited for it; the first
/// process of a container may never do that.
fn has_living_member(group: Pid) -> bool {
    let is_member = |pid: &u32| proc::group(*pid) == Some(group.as_raw_nonzero().get() as u32);
    test_kill_process_group(group).is_ok()
        && proc::numbers("/proc").into_iter().filter(is_member).any(|pid| !proc::has_ended(pid))
}

impl Drop for RunningSolution<'_> {
    fn drop(&mut self) {
        let _none_left = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _gone = self.child.wait();
        if let Some(feeder) = self.feeder.take() {
            let _fed = feeder.join();
        }
    }
}

impl SolutionExit {
    /// Fails unless the exit status is 0.
    pub fn well(self) -> Result<SolutionExit, CheckFailure> {
        match self.status.success() {
            true => Ok(self),
            false => wrong(format!("it ended with {}: {}", ending(self.status), self.last_error())),
        }
    }

    /// Fails unless the solution reported `problem` with an exit status other than 0 and a message.
    pub fn failed(self, problem: &str) -> Result<SolutionExit, CheckFailure> {
        if self.status.success() {
            return wrong(format!("{problem}: it ended with status 0, which means success"));
        }
        if self.status.signal().is_some() {
            return wrong(format!("{problem}: it ended with {}", ending(self.status)));
        }
        if self.errors.is_empty() {
            return wrong(format!(
                "{problem}: it ended with {}, but printed nothing on standard error",
                ending(self.status)
            ));
        }
        Ok(self)
    }

    fn last_error(&self) -> &str {
        self.errors.lines().last().unwrap_or("no error message")
    }
}

fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => {
            let name = Signal::from_named_raw(signal).map(|signal| format!(" ({signal:?})"));
            format!("signal {signal}{}", name.unwrap_or_default().replace("Signal::", ""))
        }
        None => format!("status {}", status.code().unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::ExerciseJudge;
    use super::super::build::Solution;
    use super::*;

    #[test]
    fn the_files_of_a_solution_are_limited() {
        let stop = AtomicBool::new(false);
        let judge = ExerciseJudge { weir: "weir".into(), stop: &stop };
        let solution = Solution::build(Path::new("/bin/sh"), &judge).unwrap().unwrap();
        let dir = CheckDirectory::new(&solution).unwrap();
        let running = dir.run(&["-c", "sleep 60"]).start().unwrap();
        let limits = fs::read_to_string(format!("/proc/{}/limits", running.pid())).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max file size")).unwrap();
        let soft = line.split_whitespace().nth(3).and_then(|bytes| bytes.parse::<u64>().ok());
        assert!(soft.is_some_and(|bytes| bytes <= MAX_FILE_BYTES), "{line}");
        running.kill();
    }

    #[test]
    fn an_ended_process_that_was_not_waited_for_is_no_living_member() {
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let group = Pid::from_child(&child);
        assert!(has_living_member(group));
        kill_process_group(group, Signal::KILL).unwrap();
        let started = Instant::now();
        while has_living_member(group) && started.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!has_living_member(group));
        assert_eq!(test_kill_process_group(group), Ok(()), "the kernel still lists it");
        child.wait().unwrap();
    }
}
