//! `weir flush`: writes the pending bytes of a running process's streams from outside, as fflush(3) would.
//!
//! Code that fills a buffer keeps its write pointer in a register and makes no system call. So the streams are
//! consistent while every thread is in a system call that does not concern them. All threads are stopped in such
//! calls, the bytes go to the program's own open file, the stream is set to empty, and the threads resume;
//! interrupted calls are made again. One case cannot be seen from outside: a signal handler that blocks in a system
//! call after it has interrupted an unlocked stdio call.
//!
//! weir writes the bytes first, then empties the stream. If weir is killed in between, the program writes them again. The death of
//! the program loses and doubles none of them.

mod attempt;
mod blocked_call;
mod processes;
mod stopped_threads;
mod timed_waits;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use weir_model::flush::FlushedStream;
use weir_model::fork_copy::ForkCopy;
use weir_model::trace::RuntimeId;
use weir_sys::memory::ProcessMemory;
use weir_sys::process_access::{self, AccessProblem};
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{errno_text, proc, process_stat};
use weir_walkers::{
    PendingRead, ThreadRegisters, USER_SEARCH_TIME, Walker, hidden_stdout_sentence, kept_records,
    set_search_time, take_search_cut_of, unseen_sentence, walkers, walkers_missing,
};

use attempt::AttemptEnd;
pub use processes::{DrainFailure, DrainTargets, DrainedProcess};
use timed_waits::TimedWait;

/// The first pause between attempts, which is about a scheduler's time slice; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// The number of reads of a running process's buffers after which a stream that is in none of them counts as absent.
const BUSY_READS: usize = 8;
/// The pause between these reads: longer than a flush of one buffer takes.
const READ_PAUSE: Duration = Duration::from_micros(700);
/// How long weir tries again to flush a process that is stopped, frozen or in uninterruptible sleep.
const STUCK_RETRY_TIME: Duration = Duration::from_secs(1);

/// The reason why a process's streams cannot be flushed at all.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// The process is gone, or weir cannot read its memory.
    #[error(transparent)]
    AccessProblem(#[from] AccessProblem),
    /// Another program traces the process.
    #[error(
        "{label} is traced by {tracer} (strace, gdb, weir trace): a process can have only one tracer; end that one, \
         or flush from it"
    )]
    #[allow(missing_docs)]
    Traced { label: String, tracer: String },
    /// `weir run` supervises the process.
    #[error(
        "{label} runs under weir run ({tracer}), which is its tracer, and a process can have only one; \
         weir run --max-delay TIME writes pending bytes by itself"
    )]
    #[allow(missing_docs)]
    Supervised { label: String, tracer: String },
    /// A system call failed. `advice` begins with its own separator.
    #[error("{label}: {call}: {}{advice}", errno_text(.source))]
    #[allow(missing_docs)]
    Call { label: String, call: &'static str, source: std::io::Error, advice: &'static str },
    /// No walker knows the process's streams. `missing` has a sentence for each buffer that weir cannot read.
    #[error("{label}: weir knows none of its streams{}", .missing.iter().map(|one| format!("; {one}")).collect::<String>())]
    #[allow(missing_docs)]
    Unknown { label: String, missing: Vec<String> },
}

/// Returns what identifies the program that a process runs.
fn image_of(pid: u32) -> Option<(u64, u64)> {
    process_stat::read(pid).map(|stat| stat.image())
}

/// The result of draining one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainResult {
    /// The streams that had pending bytes, in the order in which the attempts met them.
    pub streams: Vec<FlushedStream>,
    /// A sentence for each buffer that weir cannot read.
    pub unseen: Vec<String>,
}

/// The reason why bytes are still pending.
struct Obstacle {
    text: String,
    /// Every later attempt meets this obstacle too.
    permanent: bool,
    /// The process that writes the bytes.
    original: Option<u32>,
}

impl Obstacle {
    fn temporary(text: impl Into<String>) -> Obstacle {
        Obstacle { text: text.into(), permanent: false, original: None }
    }

    fn permanent(text: impl Into<String>) -> Obstacle {
        Obstacle { text: text.into(), permanent: true, original: None }
    }

    /// The first of `bytes` pending bytes are a copy.
    fn copy(copy: &ForkCopy, bytes: u64) -> Obstacle {
        let pid = copy.original;
        let which = match copy.bytes.len() as u64 >= bytes {
            true => "they are".into(),
            false => format!("{} of them are", ForkCopy::beginning(copy.bytes.len() as u64, copy.is_cut)),
        };
        let text = format!("{which} {}; weir flush {pid} writes those", copy.description());
        Obstacle { original: Some(pid), ..Obstacle::permanent(text) }
    }
}

/// A stream, with its number of pending bytes when its buffer was read.
#[derive(Debug, Clone)]
struct PendingStream {
    walker: RuntimeId,
    address: u64,
    fd: i32,
    bytes: u64,
    /// How many of the bytes the program still converts to another encoding.
    unconverted: u64,
    /// The copy with which the bytes begin, and which another process writes.
    copy: Option<ForkCopy>,
}

impl PendingStream {
    fn is_same(&self, other: &PendingStream) -> bool {
        (self.address, self.fd) == (other.address, other.fd)
    }
}

impl DrainResult {
    /// Returns whether no noted stream has bytes that another attempt could write.
    fn is_finished(&self) -> bool {
        self.streams.iter().all(|stream| stream.left_bytes == 0 || stream.refused)
    }

    /// Adds the result of one attempt for a stream.
    fn note(
        &mut self,
        pid: u32,
        stream: &PendingStream,
        written: u64,
        left: u64,
        obstacle: Option<Obstacle>,
    ) {
        let same = |known: &&mut FlushedStream| known.address == stream.address && known.fd == stream.fd;
        match self.streams.iter_mut().find(same) {
            Some(known) => {
                (known.written_bytes, known.left_bytes) = (known.written_bytes + written, left);
                if let Some(obstacle) = obstacle.filter(|_| left > 0) {
                    (known.why, known.refused) = (Some(obstacle.text), obstacle.permanent);
                    known.copy_of = obstacle.original;
                }
            }
            None => self.streams.push(FlushedStream {
                walker: stream.walker,
                address: stream.address,
                fd: stream.fd,
                path: proc::descriptor(pid, stream.fd).unwrap_or_default(),
                written_bytes: written,
                left_bytes: left,
                refused: obstacle.as_ref().is_some_and(|obstacle| obstacle.permanent),
                copy_of: obstacle.as_ref().and_then(|obstacle| obstacle.original),
                why: obstacle.map(|obstacle| obstacle.text),
            }),
        }
    }
}

/// Adds the streams of a later read, which replace those of earlier ones.
fn add_newer(known: &mut Vec<PendingStream>, newer: Vec<PendingStream>) {
    known.retain(|old| !newer.iter().any(|new| new.is_same(old)));
    known.extend(newer);
}

/// Returns the number of pending bytes of a stream of which `left` were pending. A stream that no read contains has changed during
/// each read, and keeps its last number, or is closed, and has no bytes.
fn still_left(left: u64, read: Option<&PendingStream>, is_closed: impl FnOnce() -> bool) -> u64 {
    match read {
        Some(read) => read.bytes,
        None if is_closed() => 0,
        None => left,
    }
}

/// Drains the streams of one process.
pub struct ProcessDrain {
    process: ProcessIdentity,
    pid: u32,
    /// The image to which the walkers belong: see [`process_stat::ProcessStat::image`].
    image: Option<(u64, u64)>,
    walkers: Vec<Box<dyn Walker>>,
    missing: Vec<String>,
    memory: ProcessMemory,
    /// The number of pending bytes that are read at once.
    most: u64,
    /// The pending bytes that another process writes.
    copies: Vec<ForkCopy>,
    /// The waits that stops of the process have interrupted.
    waits: Vec<TimedWait>,
}

impl ProcessDrain {
    /// Finds the process's walkers. At most `most` pending bytes of the process are read at once, and the `copies` that it has are
    /// left in it.
    pub fn new(
        process: ProcessIdentity,
        most: u64,
        copies: Vec<ForkCopy>,
    ) -> Result<ProcessDrain, DrainError> {
        process_access::check_same(process)?;
        let pid = process.pid();
        let image = image_of(pid);
        let (walkers, missing) = (walkers(pid), walkers_missing(pid));
        if walkers.is_empty() {
            // Without access to the memory, the search finds nothing.
            process_access::check_same(process)?;
            return Err(DrainError::Unknown { label: proc::label(pid), missing });
        }
        Ok(ProcessDrain {
            process,
            pid,
            image,
            walkers,
            missing,
            memory: ProcessMemory { pid },
            most,
            copies,
            waits: Vec::new(),
        })
    }

    /// Writes the pending bytes. Repeats the attempt while a stream has bytes that may be written later, until `wait` is over,
    /// `stop` is set, or the process could not run for [`STUCK_RETRY_TIME`]. A process without pending bytes is not stopped. The
    /// result names the bytes that are still pending, and why.
    pub fn flush(&mut self, wait: Duration, stop: &AtomicBool) -> Result<DrainResult, DrainError> {
        weir_sys::signals::catch_file_size_limit();
        set_search_time(USER_SEARCH_TIME);
        let (deadline, mut pause) = (Instant::now() + wait, PAUSE);
        let mut result = DrainResult { unseen: self.missing.clone(), ..DrainResult::default() };
        let mut stuck_since = None;
        loop {
            process_access::check_same(self.process)?;
            self.follow_image();
            self.walkers.iter().for_each(|walker| walker.search_again());
            let streams = self.pending_streams();
            if streams.is_empty() {
                break;
            }
            if let Some(copies) =
                streams.iter().map(|stream| stream.copy.as_ref()).collect::<Option<Vec<_>>>()
            {
                for (stream, copy) in streams.iter().zip(copies) {
                    let obstacle = Obstacle::copy(copy, stream.bytes);
                    result.note(self.pid, stream, 0, stream.bytes, Some(obstacle));
                }
                break;
            }
            let end = attempt::attempt(self, &streams, deadline, &mut result)?;
            stuck_since = (end == AttemptEnd::Stuck).then(|| stuck_since.unwrap_or_else(Instant::now));
            let is_stuck = stuck_since.is_some_and(|since| since.elapsed() >= STUCK_RETRY_TIME);
            let is_over = is_stuck || Instant::now() >= deadline || stop.load(Ordering::Relaxed);
            if is_over || end != AttemptEnd::ThreadEnded && result.is_finished() {
                break;
            }
            std::thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        if result.streams.is_empty() {
            // Without access to the memory, the reads find nothing.
            process_access::check_same(self.process)?;
        }
        result.unseen.extend(take_search_cut_of(self.pid));
        if result.unseen.is_empty() {
            let buffers = self.walkers.iter().flat_map(|walker| walker.buffers(&self.memory));
            let known: Vec<i32> = buffers.map(|one| one.fd).collect();
            result.unseen.extend(unseen_sentence(self.pid, &self.walkers, &known));
        }
        result.unseen.extend(hidden_stdout_sentence(self.pid));
        let records = kept_records(&self.walkers, &self.memory);
        result.unseen.extend(records.map(|records| format!("{records}: weir flush cannot write them")));
        self.update_left_bytes(&mut result);
        Ok(result)
    }

    /// Searches the walkers again if the process has executed another program.
    fn follow_image(&mut self) {
        if !self.has_same_image() {
            self.image = image_of(self.pid);
            (self.walkers, self.missing) = (walkers(self.pid), walkers_missing(self.pid));
        }
    }

    /// Returns whether the process still runs the program whose walkers are known. In another program's memory they would read
    /// unrelated bytes.
    fn has_same_image(&self) -> bool {
        self.image.is_some() && self.image == image_of(self.pid)
    }

    /// Returns the streams with pending bytes, without stopping the process.
    fn pending_streams(&self) -> Vec<PendingStream> {
        self.known_streams().into_iter().filter(|stream| stream.bytes > 0).collect()
    }

    /// Returns the streams, those without pending bytes too. A walker rejects a stream that changes during the read, so the buffers
    /// of a running process are read several times. The last read of each stream counts.
    fn known_streams(&self) -> Vec<PendingStream> {
        let mut known = self.read_streams();
        for _ in 1..BUSY_READS {
            if !proc::is_running(self.pid) {
                break;
            }
            std::thread::sleep(READ_PAUSE);
            add_newer(&mut known, self.read_streams());
        }
        known
    }

    fn read_streams(&self) -> Vec<PendingStream> {
        let buffers = self.walkers.iter().flat_map(|walker| walker.buffers(&self.memory));
        let stream = |buffer: weir_model::trace::Buffer| PendingStream {
            walker: buffer.walker,
            address: buffer.address,
            fd: buffer.fd,
            bytes: buffer.pending_bytes,
            unconverted: buffer.unconverted_bytes,
            copy: self.copy(buffer.address, buffer.fd, &buffer.pending).cloned(),
        };
        buffers.filter(|buffer| buffer.fd >= 0).map(stream).collect()
    }

    /// Returns the copy with which the pending bytes of a stream begin.
    fn copy(&self, address: u64, fd: i32, bytes: &[u8]) -> Option<&ForkCopy> {
        let mut copies = self.copies.iter().filter(|copy| (copy.address, copy.fd) == (address, fd));
        copies.find(|copy| bytes.starts_with(&copy.bytes))
    }

    fn pending(&self) -> PendingRead {
        weir_walkers::pending(&self.walkers, &self.memory, self.most)
    }

    /// As `pending`, while all threads are stopped with these registers.
    fn pending_of_stopped(&self, threads: &[ThreadRegisters]) -> PendingRead {
        weir_walkers::pending_of_stopped(&self.walkers, &self.memory, self.most, threads)
    }

    /// Reads again how many bytes are still pending: the program itself may have flushed a stream meanwhile.
    fn update_left_bytes(&self, result: &mut DrainResult) {
        let known = self.known_streams();
        if !self.process.is_current() {
            return;
        }
        for stream in result.streams.iter_mut().filter(|stream| stream.left_bytes > 0) {
            let read = known.iter().find(|one| one.address == stream.address && one.fd == stream.fd);
            let is_closed = || proc::descriptor(self.pid, stream.fd).is_none();
            stream.left_bytes = still_left(stream.left_bytes, read, is_closed);
        }
        for stream in result.streams.iter_mut().filter(|stream| stream.left_bytes == 0) {
            (stream.why, stream.refused, stream.copy_of) = (None, false, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(address: u64, bytes: u64) -> PendingStream {
        PendingStream { walker: RuntimeId::GLIBC, address, fd: 1, bytes, unconverted: 0, copy: None }
    }

    #[test]
    fn a_stream_that_one_read_lacks_stays_known() {
        let mut known = vec![stream(0x1000, 7), stream(0x2000, 5)];
        add_newer(&mut known, vec![stream(0x2000, 0), stream(0x3000, 1)]);
        let read: Vec<_> = known.iter().map(|one| (one.address, one.bytes)).collect();
        assert_eq!(read, [(0x1000, 7), (0x2000, 0), (0x3000, 1)]);
    }

    #[test]
    fn a_stream_without_a_read_keeps_its_bytes_unless_it_is_closed() {
        let unasked = || panic!("a read tells");
        assert_eq!(still_left(9, Some(&stream(0x1000, 4)), unasked), 4);
        assert_eq!(still_left(9, Some(&stream(0x1000, 0)), unasked), 0);
        assert_eq!([still_left(9, None, || false), still_left(9, None, || true)], [9, 0]);
    }
}
