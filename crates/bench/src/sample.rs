//! Runs one sample in a child process: starts it, writes its job, and reads its result.

use std::io::{Read, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{Error, Result};
use crate::ffi;
use crate::job::{Job, SampleOutcome};

/// First argument of the child process. A program with this argument must call [`child_main`]
/// before it does anything else.
pub const CHILD_ARGUMENT: &str = "__bench-sample";

/// Interval at which the parent checks the stop flag while a sample runs; a tenth of a second is no noticeable delay.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the child: reads a job as JSON from standard input and writes its outcome as JSON to standard output.
/// Returns the exit status.
pub fn child_main() -> i32 {
    // A sample must not outlive a killed parent.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut text = String::new();
    let job: Job = match stdin().read_to_string(&mut text).map(|_| serde_json::from_str(&text)) {
        Ok(Ok(job)) => job,
        _ => return 2,
    };
    let outcome = ffi::measure(&job);
    let written = serde_json::to_vec(&outcome).ok().and_then(|json| stdout().write_all(&json).ok());
    i32::from(written.is_none())
}

/// The end of a sample's process.
pub enum SampleEnd {
    /// The outcome, and the wall-clock seconds including process start.
    Finished(SampleOutcome, f64),
    /// The parent killed the process because `stop` was set.
    Stopped,
}

/// Runs one sample in a child process. If `stop` becomes true, kills the process and returns [`SampleEnd::Stopped`].
pub fn run(job: &Job, label: &str, stop: &AtomicBool) -> Result<SampleEnd> {
    let started = Instant::now();
    let failed = |what: &str, error: std::io::Error| {
        Error::Failed(format!("{label}: cannot {what} its process: {error}"))
    };
    let mut child = Command::new("/proc/self/exe")
        .arg0("weir-bench-sample")
        .arg(CHILD_ARGUMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Keeps Ctrl-C from the child: the parent stops the sample and prints the results so far.
        .process_group(0)
        .spawn()
        .map_err(|error| failed("start", error))?;
    let json = serde_json::to_vec(job).map_err(|error| failed("feed", error.into()))?;
    // Ignores EPIPE of a child that died at once: its exit status is the better error.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(&json));
    let output = match watch(&mut child, stop) {
        Ok(Some(output)) => output,
        other => {
            let _ = child.kill();
            let _ = child.wait();
            return other.map(|_| SampleEnd::Stopped).map_err(|error| failed("read from", error));
        }
    };
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    match serde_json::from_slice(&output) {
        Ok(outcome) if status.success() => Ok(SampleEnd::Finished(outcome, started.elapsed().as_secs_f64())),
        _ if stop.load(Ordering::Relaxed) => Ok(SampleEnd::Stopped),
        _ => Err(Error::Failed(format!("{label}: its process {}", ending(status)))),
    }
}

/// Returns the child's output, or `None` if `stop` was set.
fn watch(child: &mut Child, stop: &AtomicBool) -> std::io::Result<Option<Vec<u8>>> {
    let Some(pipe) = child.stdout.as_mut() else { return Ok(Some(Vec::new())) };
    let (mut output, mut chunk) = (Vec::new(), [0; 4096]);
    let timeout = Timespec { tv_sec: 0, tv_nsec: STOP_CHECK_INTERVAL.as_nanos() as i64 };
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match poll(&mut [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => match pipe.read(&mut chunk)? {
                0 => return Ok(Some(output)),
                count => output.extend_from_slice(&chunk[..count]),
            },
            Err(error) => return Err(error.into()),
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(9) => "was killed by SIGKILL, probably for lack of memory (see dmesg): use a smaller --size, \
                    --records or --buffer"
            .into(),
        Some(signal) => {
            format!("was killed by signal {signal}; run it again, and report it if it happens again")
        }
        None => format!("ended with {status} and no result; run it again, and report it if it happens again"),
    }
}
