//! Replays the threads of compiled code that were killed between a write(2) and the note of it in the stream.
//!
//! A file buffer of C++ keeps its bytes until some instructions after the write(2) that wrote them, and a long write
//! takes several calls. The object alone does not tell how far the thread was. So each killed thread that has a stream
//! with pending bytes in its registers or on its stack is replayed for a moment. If it notes that all bytes are written
//! without a write that begins with them, it had written them before it was killed. The stream's unwritten bytes are
//! then those that the replayed thread would still have written, and those that are pending afterwards. In every other
//! case the thread had written none of them, and the dead process's memory holds what is unwritten.

use std::collections::VecDeque;

use weir_sys::memory::{Memory, ProcessMemory};
use weir_walkers::PendingBytes;

use super::UnwrittenStream;
use super::killed_thread::KilledThread;
use super::replay::{Replay, ReplayState, StreamInFlush};
use super::replay_process::ReplayedMemory;
use crate::supervise::Tracees;

/// The part of a stack that is searched for a stream's address: a flush is a few calls deep.
const STACK_BYTES: usize = 4 << 10;
/// The distance from the start of a stream object to the word that counts its bytes, at most, and to its end.
const OBJECT_BYTES: u64 = 64;

/// The replays of a process's killed threads, one after the other.
pub(crate) struct StreamReplays {
    running: Option<Replay>,
    /// Threads to replay, each with the streams that it may have been flushing.
    waiting: VecDeque<(KilledThread, Vec<StreamInFlush>)>,
    replayed: Vec<ReplayedMemory>,
}

impl StreamReplays {
    /// Starts the replays; None if no killed thread can be inside a stream.
    pub fn start(tracees: &Tracees, pid: u32, tid: u32, pending: &[PendingBytes]) -> Option<StreamReplays> {
        let stream = |one: &PendingBytes| {
            Some(StreamInFlush { fd: one.fd, note: one.note?, data_address: one.data_address? })
        };
        let streams: Vec<StreamInFlush> = pending.iter().filter_map(stream).collect();
        let threads = &tracees.processes.get(&pid).filter(|_| !streams.is_empty())?.killed_threads;
        let memory = ProcessMemory { pid: tid };
        let waiting: VecDeque<(KilledThread, Vec<StreamInFlush>)> = threads
            .iter()
            .map(|thread| (thread.clone(), streams_of_thread(&memory, thread, &streams)))
            .filter(|(_, streams)| !streams.is_empty())
            .collect();
        let mut replays = StreamReplays { running: None, waiting, replayed: Vec::new() };
        replays.start_next(tid);
        replays.running.is_some().then_some(replays)
    }

    fn start_next(&mut self, tid: u32) {
        while self.running.is_none()
            && let Some((thread, streams)) = self.waiting.pop_front()
        {
            self.running = Replay::start_in_flush(tid, &thread, streams);
        }
    }

    /// Goes on as far as possible without waiting. Returns whether all replays have ended.
    pub fn poll(&mut self, tid: u32) -> bool {
        while let Some(replay) = self.running.take() {
            match replay.poll() {
                ReplayState::Running(replay) => {
                    self.running = Some(replay);
                    return false;
                }
                ReplayState::Ended(replayed) => self.replayed.extend(replayed),
            }
            self.start_next(tid);
        }
        true
    }

    /// Returns the unwritten bytes of a stream that a replayed thread was inside; None for another stream.
    pub fn unwritten(
        &self,
        tracees: &mut Tracees,
        pid: u32,
        stream: &PendingBytes,
    ) -> Option<UnwrittenStream> {
        let note = stream.note?.address;
        let replayed = self.replayed.iter().find(|one| one.changed == Some(note))?;
        let written = replayed.writes.iter().filter(|write| write.fd == stream.fd);
        let mut bytes: Vec<u8> = written.flat_map(|write| write.bytes.iter().copied()).collect();
        let pending = tracees.pending_in_memory(pid, replayed).into_iter();
        bytes.extend(pending.filter(|one| one.stream == stream.stream).flat_map(|one| one.bytes));
        let settled = tracees.settled_len(pid, stream.stream, stream.fd, &bytes);
        bytes.drain(..settled);
        Some(UnwrittenStream { stream: stream.stream, fd: stream.fd, bytes })
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
