//! Writes out what waits in a running process's streams, from outside, as if the program had called fflush.
//!
//! The moment is one at which every thread is inside a system call that has nothing to do with the streams: code
//! that fills a buffer holds its write pointer in a register and makes no call. All threads are stopped there, the
//! bytes go to the program's own open file, and the stream is told that it is empty; then everything goes on, and
//! calls that the stop broke are made again. What cannot be told from outside: a signal handler that waits in a
//! system call after it broke into the program's own unlocked stdio call.
//!
//! Bytes are written first and taken out of the stream after that. Killed in between, weir leaves them in both
//! places, and they come twice; nothing else that dies loses or doubles a byte.

mod attempt;
mod blocked_call;
mod processes;
mod stopped_threads;
mod target_file;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use processes::{DrainTargets, DrainedProcess};
pub use weir_model::flush::FlushedStream;
use weir_model::trace::RuntimeId;
use weir_sys::memory::ProcessMemory;
use weir_sys::process_access::{self, AccessProblem};
use weir_sys::{errno_text, proc};
use weir_walkers::{Pending, Walker, walkers, walkers_missing};

/// The pauses between attempts.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MOST: Duration = Duration::from_millis(100);
/// How often a process that runs is looked at before nothing is believed to wait.
const LOOKS: usize = 8;
const BETWEEN_LOOKS: Duration = Duration::from_micros(700);

/// Why a process's streams could not be written out at all.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// It is none that can be looked into.
    #[error(transparent)]
    AccessProblem(#[from] AccessProblem),
    /// Another program stops and starts it.
    #[error(
        "{label} is traced by {tracer} (strace, gdb, weir trace): a process has one tracer only; end that one, or flush \
         from it"
    )]
    Traced {
        /// Its name.
        label: String,
        /// The tracer's name.
        tracer: String,
    },
    /// A call failed.
    #[error("{label}: {call}: {}{advice}", errno_text(.source))]
    Call {
        /// The process's name.
        label: String,
        /// Which.
        call: &'static str,
        /// Why.
        source: std::io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// No walker knows its streams.
    #[error("{label}: no streams were found that weir knows{}", .missing.iter().map(|one| format!("; {one}")).collect::<String>())]
    Unknown {
        /// The process's name.
        label: String,
        /// What cannot be read.
        missing: Vec<String>,
    },
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainResult {
    /// The streams that had something, in the order in which they were written.
    pub streams: Vec<FlushedStream>,
    /// What has buffers that cannot be read, a sentence each.
    pub unseen: Vec<String>,
}

/// Why bytes were left.
struct Obstacle {
    text: String,
    refused: bool,
}

impl Obstacle {
    /// It may be over soon.
    fn now(text: impl Into<String>) -> Obstacle {
        Obstacle { text: text.into(), refused: false }
    }

    /// It will not.
    fn refused(text: impl Into<String>) -> Obstacle {
        Obstacle { text: text.into(), refused: true }
    }
}

/// A stream in which something waits, as a look from outside shows it.
#[derive(Debug, Clone, Copy)]
struct PendingStream {
    walker: RuntimeId,
    address: u64,
    fd: i32,
    bytes: u64,
}

impl PendingStream {
    fn of(walker: RuntimeId, address: u64, fd: i32, bytes: u64) -> PendingStream {
        PendingStream { walker, address, fd, bytes }
    }
}

impl DrainResult {
    /// Does anything still wait?
    pub fn is_partial(&self) -> bool {
        self.streams.iter().any(|stream| stream.left_bytes > 0)
    }

    /// Everything is written, or will not be.
    fn is_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.left_bytes == 0 || stream.refused)
    }

    fn note(&mut self, pid: u32, one: &PendingStream, written: u64, left: u64, why: Option<Obstacle>) {
        let known = |stream: &&mut FlushedStream| stream.address == one.address && stream.fd == one.fd;
        match self.streams.iter_mut().find(known) {
            Some(stream) => {
                (stream.written_bytes, stream.left_bytes) = (stream.written_bytes + written, left);
                if let Some(why) = why.filter(|_| left > 0) {
                    (stream.why, stream.refused) = (Some(why.text), why.refused);
                }
            }
            None => self.streams.push(FlushedStream {
                walker: one.walker,
                address: one.address,
                fd: one.fd,
                path: proc::descriptor(pid, one.fd).unwrap_or_default(),
                written_bytes: written,
                left_bytes: left,
                refused: why.as_ref().is_some_and(|why| why.refused),
                why: why.map(|why| why.text),
            }),
        }
    }
}

/// Keeps the walkers of a process, for a flush now and then.
pub struct ProcessDrain {
    pid: u32,
    walkers: Vec<Box<dyn Walker>>,
    missing: Vec<String>,
    memory: ProcessMemory,
}

impl ProcessDrain {
    /// Looks at what the process is.
    pub fn of(pid: u32) -> Result<ProcessDrain, DrainError> {
        process_access::check(pid)?;
        let (walkers, missing) = (walkers(pid), walkers_missing(pid));
        if walkers.is_empty() {
            return Err(DrainError::Unknown { label: proc::label(pid), missing });
        }
        Ok(ProcessDrain { pid, walkers, missing, memory: ProcessMemory { pid } })
    }

    /// Writes out what waits now; tries again until `wait` is over or `stop` is set. A process in which nothing
    /// waits is only read. What still waits at the end is in the answer, with the reason.
    pub fn flush(&mut self, wait: Duration, stop: &AtomicBool) -> Result<DrainResult, DrainError> {
        let (until, mut pause) = (Instant::now() + wait, PAUSE);
        let mut flushed = DrainResult { unseen: self.missing.clone(), ..DrainResult::default() };
        self.walkers.iter().for_each(|walker| walker.search_again());
        loop {
            process_access::check(self.pid)?;
            let waiting = self.waiting();
            if waiting.is_empty() {
                break;
            }
            attempt::attempt(self, &waiting, until, &mut flushed)?;
            let over = Instant::now() >= until || stop.load(Ordering::Relaxed);
            if over || flushed.is_done() {
                break;
            }
            std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(PAUSE_MOST);
        }
        self.settle(&mut flushed);
        Ok(flushed)
    }

    /// The streams in which something waits, without stopping the process. A stream that changes while it is read
    /// is not believed: one that seems empty in a process that runs is read again.
    fn waiting(&self) -> Vec<PendingStream> {
        for _ in 1..LOOKS {
            let waiting = self.look();
            if !waiting.is_empty() || !proc::is_running(self.pid) {
                return waiting;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.look()
    }

    fn look(&self) -> Vec<PendingStream> {
        let all = self.walkers.iter().flat_map(|walker| walker.buffers(&self.memory));
        let waiting = all.filter(|one| one.pending_bytes > 0 && one.fd >= 0);
        waiting.map(|one| PendingStream::of(one.walker, one.address, one.fd, one.pending_bytes)).collect()
    }

    fn pending(&self) -> Vec<Pending> {
        self.walkers.iter().flat_map(|walker| walker.pending(&self.memory)).collect()
    }

    /// A stream that could not be reached may have been flushed by the program itself meanwhile.
    fn settle(&self, flushed: &mut DrainResult) {
        let waiting = self.waiting();
        for stream in flushed.streams.iter_mut().filter(|stream| stream.left_bytes > 0) {
            let waits = waiting.iter().find(|one| one.address == stream.address && one.fd == stream.fd);
            stream.left_bytes = waits.map_or(0, |one| one.bytes);
        }
        for stream in flushed.streams.iter_mut().filter(|stream| stream.left_bytes == 0) {
            (stream.why, stream.refused) = (None, false);
        }
    }
}
