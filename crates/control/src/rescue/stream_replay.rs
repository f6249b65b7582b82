//! Replays the threads of compiled code that were killed between a write(2) and the note of it in the stream.
//!
//! A file buffer of C++ keeps its bytes until some instructions after the write(2) that wrote them, and a long write
//! takes several calls. The object alone does not show how far the thread was. So each killed thread that has a stream
//! with pending bytes in its registers or on its stack is replayed for a moment. If it notes that all bytes are written
//! without a write that begins with them, it had written them before it was killed. The stream's unwritten bytes are
//! then those that the replayed thread would still have written, and those that are pending afterwards. In every other
//! case the thread had written none of them, and the dead process's memory holds what is unwritten.
//!
//! A file buffer of libc++ hands its bytes to a FILE of the C library. The replayed thread moves bytes of both, so its memory and
//! its writes show the unwritten bytes of both.
//!
//! Goroutines are threads of a scheduler of their own: each one that was in a flush is replayed, also if it was waiting. It
//! ends where it notes that all is written, or where it is about to write the next bytes. If it reaches neither, it is
//! unknown which bytes are written, and they are saved in a file of their own.

use std::collections::{BTreeSet, VecDeque};

use weir_model::trace::RuntimeId;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_walkers::PendingBytes;

use super::UnwrittenStream;
use super::killed_thread::KilledThread;
use super::replay::{OwnThread, Replay, ReplayFailure, ReplayState, STEPS_BUDGET_NS, StreamInFlush};
use super::replay_process::{ReplayEnd, ReplayedMemory};
use crate::supervise::Tracees;

/// The part of a stack that is searched for a stream's address: a flush is a few calls deep.
const STACK_BYTES: usize = 4 << 10;
/// The distance from the start of a stream object to the word that counts its bytes, at most, and to its end.
const OBJECT_BYTES: u64 = 64;

/// The replays of a process's killed threads, one after the other.
#[derive(Default)]
pub(crate) struct StreamReplays {
    running: Option<(Replay, RunningThread)>,
    waiting: VecDeque<ThreadToReplay>,
    replayed: Vec<ReplayedMemory>,
    /// The CPU time of each replay.
    budget_ns: u64,
    /// Streams, by the addresses of their notes, whose written bytes are unknown: the replay of a thread that may have been
    /// flushing them has no result.
    unknown: BTreeSet<u64>,
    /// As `unknown`, streams whose memory is not in use any more.
    freed: BTreeSet<u64>,
    /// The inner streams that have pending bytes, each with the note of the stream that hands it bytes.
    inner: Vec<(u64, u64)>,
}

/// A thread, and the streams that it may have been flushing.
struct ThreadToReplay {
    thread: KilledThread,
    streams: Vec<StreamInFlush>,
    own: Option<OwnThread>,
}

/// The streams of a thread that is being replayed, and whether it is a goroutine.
type RunningThread = (Vec<StreamInFlush>, bool);

impl StreamReplays {
    /// Starts the replays; None if no killed thread can be inside a stream.
    pub fn start(tracees: &Tracees, pid: u32, tid: u32, pending: &[PendingBytes]) -> Option<StreamReplays> {
        StreamReplays::start_within(STEPS_BUDGET_NS, tracees, pid, tid, pending)
    }

    /// As [`StreamReplays::start`], with this CPU time for each replay.
    pub fn start_within(
        budget_ns: u64,
        tracees: &Tracees,
        pid: u32,
        tid: u32,
        pending: &[PendingBytes],
    ) -> Option<StreamReplays> {
        let stream = |one: &PendingBytes| {
            Some(StreamInFlush { fd: one.fd, note: one.note?, data_address: one.data_address? })
        };
        let streams = |of_go: bool| -> Vec<StreamInFlush> {
            let own = pending.iter().filter(|one| (one.walker == RuntimeId::GO) == of_go);
            own.filter_map(stream).collect()
        };
        let inner = pending.iter().filter_map(|one| Some((one.inner?.address, one.note?.address)));
        let mut replays = StreamReplays { inner: inner.collect(), budget_ns, ..StreamReplays::default() };
        replays.add_threads(tracees, pid, tid, &streams(false));
        let has_own_threads = !streams(true).is_empty();
        if has_own_threads {
            replays.add_own_threads(tracees, pid, tid, &streams(true));
        }
        replays.start_next(tid);
        (has_own_threads || replays.running.is_some()).then_some(replays)
    }

    fn add_threads(&mut self, tracees: &Tracees, pid: u32, tid: u32, streams: &[StreamInFlush]) {
        let Some(process) = tracees.processes.get(&pid).filter(|_| !streams.is_empty()) else { return };
        let memory = ProcessMemory { pid: tid };
        for thread in &process.killed_threads {
            let streams = streams_of_thread(&memory, thread, streams);
            if !streams.is_empty() {
                self.waiting.push_back(ThreadToReplay { thread: thread.clone(), streams, own: None });
            }
        }
    }

    /// Adds the goroutines that were in a flush.
    fn add_own_threads(&mut self, tracees: &Tracees, pid: u32, tid: u32, streams: &[StreamInFlush]) {
        let found = tracees.suspended_flushes(pid, tid);
        self.freed.extend(found.freed);
        self.unknown.extend(found.unknown);
        for flush in found.flushes {
            let is_flushed = |stream: &&StreamInFlush| flush.notes.contains(&stream.note.address);
            let streams: Vec<StreamInFlush> = streams.iter().filter(is_flushed).copied().collect();
            if streams.is_empty() {
                continue;
            }
            let own = OwnThread {
                yield_word: flush.yield_word,
                write_entries: found.write_entries.clone(),
                scheduler_entries: found.scheduler_entries.clone(),
            };
            match KilledThread::read_any(tid) {
                Some(base) => {
                    let thread = base.with_registers(&flush.registers);
                    self.waiting.push_back(ThreadToReplay { thread, streams, own: Some(own) });
                }
                None => self.unknown.extend(streams.iter().map(|one| one.note.address)),
            }
        }
    }

    fn start_next(&mut self, tid: u32) {
        while self.running.is_none()
            && let Some(ThreadToReplay { thread, streams, own }) = self.waiting.pop_front()
        {
            let (is_own_thread, replayed) = (own.is_some(), streams.clone());
            let replay = match own {
                Some(own) => Replay::start_own_thread(tid, &thread, streams, own, self.budget_ns),
                None => Replay::start_in_flush(tid, &thread, streams, self.budget_ns),
            };
            match replay {
                Some(replay) => self.running = Some((replay, (replayed, is_own_thread))),
                None if is_own_thread => self.add_unknown(&replayed),
                None => {}
            }
        }
    }

    fn add_unknown(&mut self, streams: &[StreamInFlush]) {
        self.unknown.extend(streams.iter().map(|one| one.note.address));
    }

    /// Goes on as far as possible without waiting. Returns whether all replays have ended.
    pub fn poll(&mut self, tid: u32) -> bool {
        while let Some((replay, (streams, is_own_thread))) = self.running.take() {
            match replay.poll() {
                ReplayState::Running(replay) => {
                    self.running = Some((replay, (streams, is_own_thread)));
                    return false;
                }
                ReplayState::Ended(Ok(replayed)) => self.replayed.push(replayed),
                // A thread that does not note a write soon was not flushing. A goroutine is replayed only if it was.
                ReplayState::Ended(Err(ReplayFailure::NotReached)) if !is_own_thread => {}
                ReplayState::Ended(Err(_)) => self.add_unknown(&streams),
            }
            self.start_next(tid);
        }
        true
    }

    /// Returns whether it is unknown which bytes of a stream are written, or of the stream that hands it bytes.
    pub fn is_unknown(&self, stream: &PendingBytes) -> bool {
        let outer = self.inner.iter().filter(|(inner, _)| *inner == stream.stream).map(|(_, note)| *note);
        stream.note.map(|note| note.address).into_iter().chain(outer).any(|note| self.unknown.contains(&note))
    }

    /// Returns whether a replayed thread was about to write the first byte of a stream, so that none is written.
    pub fn is_unwritten(&self, stream: &PendingBytes) -> bool {
        let first = |note: u64| self.replayed.iter().any(|one| one.end == ReplayEnd::FirstByte(note));
        stream.note.is_some_and(|note| first(note.address))
    }

    /// Returns the unwritten bytes of a stream of a goroutine, or that a replayed thread was inside; None for another stream.
    pub fn unwritten(
        &self,
        tracees: &mut Tracees,
        pid: u32,
        stream: &PendingBytes,
    ) -> Option<UnwrittenStream> {
        let noted = |note: u64| self.replayed.iter().find(|one| one.end == ReplayEnd::Noted(note));
        // The bytes of an inner stream are among those of the stream that handed them over.
        if self.inner.iter().any(|(inner, note)| *inner == stream.stream && noted(*note).is_some()) {
            return Some(UnwrittenStream::of(stream, Vec::new()));
        }
        let note = stream.note?.address;
        if stream.walker == RuntimeId::GO {
            return Some(self.unwritten_of_goroutine(tracees, pid, stream, note));
        }
        let replayed = noted(note)?;
        let written = replayed.writes.iter().filter(|write| write.fd == stream.fd);
        let mut bytes: Vec<u8> = written.flat_map(|write| write.bytes.iter().copied()).collect();
        let is_own = |one: &PendingBytes| {
            one.stream == stream.stream || stream.inner.is_some_and(|inner| inner.address == one.stream)
        };
        let pending = tracees.pending_in_memory(pid, replayed).into_iter();
        bytes.extend(pending.filter(is_own).flat_map(|one| one.bytes));
        let streams = match stream.inner {
            Some(inner) => (inner.address, Some(stream.stream)),
            None => (stream.stream, None),
        };
        let settled = tracees.settled_len(pid, streams, stream.fd, &bytes);
        bytes.drain(..settled);
        Some(UnwrittenStream::of(stream, bytes).placed(stream))
    }

    fn unwritten_of_goroutine(
        &self,
        tracees: &Tracees,
        pid: u32,
        of: &PendingBytes,
        note: u64,
    ) -> UnwrittenStream {
        let length = of.bytes.len();
        let (data, is_freed) = (of.data_address.unwrap_or(0), self.freed.contains(&note));
        let written = |one: &ReplayedMemory| match one.end {
            ReplayEnd::Noted(address) if address == note => Some(length),
            ReplayEnd::NextWrite(fd, address) if fd == of.fd => {
                address.checked_sub(data).map(|before| before as usize).filter(|before| *before < length)
            }
            _ => None,
        };
        let written = if is_freed { length } else { self.replayed.iter().find_map(written).unwrap_or(0) };
        let mut bytes = of.bytes[written..].to_vec();
        let settled = tracees.settled_len(pid, (of.stream, None), of.fd, &bytes);
        bytes.drain(..settled);
        UnwrittenStream { is_unsure: self.unknown.contains(&note), ..UnwrittenStream::of(of, bytes) }
    }
}

/// Returns those of the streams of which a thread has an address in a register or on its stack.
fn streams_of_thread(
    memory: &ProcessMemory,
    thread: &KilledThread,
    streams: &[StreamInFlush],
) -> Vec<StreamInFlush> {
    let stack = memory.bytes(thread.stack_pointer(), STACK_BYTES);
    let on_stack = stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let pointers: Vec<u64> = on_stack.chain(thread.general_registers()).collect();
    let is_used = |stream: &&StreamInFlush| {
        let word = stream.note.address;
        let object = word.saturating_sub(OBJECT_BYTES)..word.saturating_add(OBJECT_BYTES);
        pointers.iter().any(|pointer| object.contains(pointer))
    };
    streams.iter().filter(is_used).copied().collect()
}
