//! `--rescue`: writes the pending bytes of a process that dies to their file, pipe or terminal, once and in order.
//!
//! In the exit stop the process's memory and descriptors still exist. Bytes that the file does not take are saved in
//! a file of their own. Between forks, execs, signals and exits the program runs at its own speed.

pub(crate) mod ambiguous_streams;
mod cpython_handoff;
mod in_use;
#[cfg(target_arch = "x86_64")]
mod interrupted_store;
mod job;
#[cfg(target_arch = "x86_64")]
pub(crate) mod killed_thread;
pub(crate) mod last_write;
#[cfg(target_arch = "x86_64")]
pub(crate) mod replay;
#[cfg(target_arch = "x86_64")]
mod replay_process;
pub(crate) mod save;
#[cfg(all(test, target_arch = "x86_64"))]
mod single_step_c_test;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod single_step_test;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod single_step_tracee;
#[cfg(target_arch = "x86_64")]
pub(crate) mod stream_replay;
mod unconverted;
mod unseen_files;

use std::collections::HashMap;

use self::in_use::mark_in_use;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_walkers::{FlushPosition, OutsideWrite, PendingBytes};

use self::job::RescueJob;
#[cfg(target_arch = "x86_64")]
use self::killed_thread::KilledThread;
#[cfg(target_arch = "x86_64")]
use self::replay::{Replay, ReplayState};
#[cfg(target_arch = "x86_64")]
use self::replay_process::{ReplayedMemory, ReplayedWrite};
#[cfg(target_arch = "x86_64")]
use self::stream_replay::StreamReplays;
use crate::foreign_file::TargetThread;
use crate::supervise::{LifecycleHandler, TracedProcess, Tracees};

/// Rescues the pending bytes of dying processes.
#[derive(Default)]
pub(crate) struct RescueHandler {
    /// The unfinished rescues of processes in their exit stop.
    unfinished: HashMap<u32, Rescue>,
}

/// The rescue of one process's bytes.
enum Rescue {
    /// Waits for the replay of the killed thread. Holds the pending bytes as the dead process's memory has them.
    #[cfg(target_arch = "x86_64")]
    Replaying(Replay, Vec<PendingBytes>),
    /// Waits for the replays of killed threads of compiled code.
    #[cfg(target_arch = "x86_64")]
    ReplayingStreams(StreamReplays, Vec<PendingBytes>),
    Writing(Vec<RescueJob>),
}

/// The bytes of one stream that a dead process has not written.
pub(crate) struct UnwrittenStream {
    /// The address of the stream object; 0 if the bytes belong to no known stream.
    pub stream: u64,
    pub fd: i32,
    pub bytes: Vec<u8>,
    /// The process may have written the bytes.
    pub is_unsure: bool,
    /// As [`PendingBytes::flush_position`], of the unwritten bytes.
    pub position: Option<FlushPosition>,
    /// As [`PendingBytes::outside`].
    pub outside: OutsideWrite,
}

impl UnwrittenStream {
    /// Makes the unwritten bytes of a stream that is known.
    fn of(pending: &PendingBytes, bytes: Vec<u8>) -> UnwrittenStream {
        let position = pending.flush_position.map(|one| one.of_rest(pending.bytes.len(), bytes.len()));
        let outside = pending.outside;
        UnwrittenStream {
            stream: pending.stream,
            position,
            outside,
            ..UnwrittenStream::unknown(pending.fd, bytes)
        }
    }

    /// Makes the unwritten bytes of no known stream.
    fn unknown(fd: i32, bytes: Vec<u8>) -> UnwrittenStream {
        let outside = OutsideWrite::default();
        UnwrittenStream { stream: 0, fd, bytes, is_unsure: false, position: None, outside }
    }

    /// Sets the position of the bytes that a replay has left of a stream. It is unknown if they are other bytes than those that
    /// the stream and its inner one had before.
    #[cfg(target_arch = "x86_64")]
    fn placed(mut self, before: &PendingBytes) -> UnwrittenStream {
        let Some(position) = before.flush_position else { return self };
        let first = before.inner.map_or(0, |inner| inner.pending_bytes as usize);
        let has_all = self.bytes.get(first..).is_some_and(|rest| rest.starts_with(&before.bytes));
        let (all, left) = (before.bytes.len(), self.bytes.len());
        self.position = match has_all {
            true => Some(position.of_rest(0, first)),
            false => before.bytes.ends_with(&self.bytes).then(|| position.of_rest(all, left)),
        };
        self.is_unsure |= self.position.is_none();
        self
    }
}

impl LifecycleHandler for RescueHandler {
    fn service(&self) -> Option<&'static str> {
        Some(save::RESCUED)
    }

    fn on_exit(&mut self, tracees: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        let rescue = self.unfinished.remove(&pid).unwrap_or_else(|| Rescue::begin(tracees, pid, tid, status));
        let Some(rescue) = rescue.advance(tracees, pid, tid, status) else {
            unconverted::save(tracees, pid, tid, status);
            unseen_files::report(tracees, pid, tid, status);
            return true;
        };
        self.unfinished.insert(pid, rescue);
        false
    }

    fn on_reaped(&mut self, tracees: &mut Tracees, pid: u32) {
        self.unfinished.remove(&pid);
        let process = tracees.processes.get(&pid);
        let owns_memory = |one: &&TracedProcess| one.memory_owner == pid && !one.before_exec;
        if process.filter(owns_memory).is_some_and(|one| !one.exit_reported) {
            tracees.add_limitation(format!(
                "process {pid} was killed at a moment at which its memory could not be read any more: bytes that it had not \
                 written may be lost"
            ));
        }
    }
}

impl Rescue {
    fn begin(tracees: &mut Tracees, pid: u32, tid: u32, status: i32) -> Rescue {
        let pending = ambiguous_streams::decided_at_end(tracees, pid, tid);
        // Only a replay shows which bytes of a goroutine are written.
        #[cfg(not(target_arch = "x86_64"))]
        let pending =
            pending.into_iter().filter(|one| one.walker != weir_model::trace::RuntimeId::GO).collect();
        #[cfg(target_arch = "x86_64")]
        if let Some(replay) = start_replay(tracees, pid, tid) {
            return Rescue::Replaying(replay, pending);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(replays) = StreamReplays::start(tracees, pid, tid, &pending) {
            return Rescue::ReplayingStreams(replays, pending);
        }
        Rescue::Writing(jobs(pid, tid, status, marked_streams(tracees, pid, tid, pending)))
    }

    /// Goes on as far as possible without waiting. Returns the rest; None if the rescue is finished.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
    fn advance(self, tracees: &mut Tracees, pid: u32, tid: u32, status: i32) -> Option<Rescue> {
        let mut jobs = match self {
            #[cfg(target_arch = "x86_64")]
            Rescue::Replaying(replay, pending) => {
                let replayed = match replay.poll() {
                    ReplayState::Running(replay) => return Some(Rescue::Replaying(replay, pending)),
                    ReplayState::Ended(replayed) => replayed.ok(),
                };
                let unwritten = match replayed {
                    Some(replayed) => {
                        let mut unwritten = replayed_streams(tracees, pid, &pending, &replayed);
                        mark_in_use(tracees, (pid, tid), &replayed, &mut unwritten, &[]);
                        unwritten
                    }
                    None => marked_streams(tracees, pid, tid, pending),
                };
                jobs(pid, tid, status, unwritten)
            }
            #[cfg(target_arch = "x86_64")]
            Rescue::ReplayingStreams(mut replays, pending) => {
                if !replays.poll(tid) {
                    return Some(Rescue::ReplayingStreams(replays, pending));
                }
                jobs(pid, tid, status, unwritten_after(tracees, pid, tid, pending, &replays))
            }
            Rescue::Writing(jobs) => jobs,
        };
        while let Some(job) = jobs.first_mut() {
            if !job.advance(tracees) {
                return Some(Rescue::Writing(jobs));
            }
            tracees.add_rescued(jobs.remove(0).rescued);
        }
        None
    }
}

fn jobs(pid: u32, tid: u32, status: i32, unwritten: Vec<UnwrittenStream>) -> Vec<RescueJob> {
    let thread = TargetThread::new(tid);
    unwritten.into_iter().filter_map(|one| RescueJob::new(pid, &thread, status, one)).collect()
}

/// Returns the unwritten bytes of a process whose threads are all in their exit stop or reaped, by its memory and
/// registers alone.
pub(crate) fn unwritten_streams(
    tracees: &Tracees,
    pid: u32,
    tid: u32,
    pending: Vec<PendingBytes>,
) -> Vec<UnwrittenStream> {
    let mut unwritten: Vec<UnwrittenStream> = Vec::new();
    let held_by_stream: Vec<(u64, Vec<u8>)> =
        pending.iter().map(|one| (one.stream, one.bytes.clone())).collect();
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    for mut one in pending {
        #[cfg(target_arch = "x86_64")]
        if let Some(process) = tracees.processes.get(&pid) {
            interrupted_store::complete(tid, &process.killed_threads, &mut one);
        }
        let written = last_write::written_len(tracees, pid, tid, &one).max(tracees.inherited_len(pid, &one));
        let bytes = one.bytes[written.min(one.bytes.len())..].to_vec();
        // While the lock is held the bytes may be in the inner stream already.
        let is_unsure = one.inner.is_some() && one.locked != Some(false) || !one.copies.is_empty();
        unwritten.push(UnwrittenStream { is_unsure, ..UnwrittenStream::of(&one, bytes) });
    }
    for mut one in cpython_handoff::unwritten_objects(tracees, pid, tid) {
        let held = held_by_stream.iter().find(|(stream, _)| *stream == one.stream);
        let held = held.map_or(&[][..], |(_, bytes)| bytes);
        one.bytes.drain(..tracees.written_ahead.handed_prefix_len(pid, one.stream, held, &one.bytes));
        match unwritten.iter_mut().find(|known| known.stream == one.stream) {
            Some(known) => known.bytes.extend(one.bytes),
            None => unwritten.push(one),
        }
    }
    unwritten
}

/// As [`unwritten_streams`], with the marks of [`mark_in_use`].
fn marked_streams(
    tracees: &mut Tracees,
    pid: u32,
    tid: u32,
    pending: Vec<PendingBytes>,
) -> Vec<UnwrittenStream> {
    let mut unwritten = unwritten_streams(tracees, pid, tid, pending);
    mark_in_use(tracees, (pid, tid), &ProcessMemory { pid: tid }, &mut unwritten, &[]);
    unwritten
}

/// As [`marked_streams`], with the results of replays.
#[cfg(target_arch = "x86_64")]
pub(crate) fn unwritten_after(
    tracees: &mut Tracees,
    pid: u32,
    tid: u32,
    pending: Vec<PendingBytes>,
    replays: &StreamReplays,
) -> Vec<UnwrittenStream> {
    let (mut unwritten, mut known) = (Vec::new(), Vec::new());
    for one in pending {
        let stream = one.stream;
        let is_known = match replays.unwritten(tracees, pid, &one) {
            Some(replayed) => {
                unwritten.push(replayed);
                true
            }
            None => {
                let (is_unwritten, is_unknown) = (replays.is_unwritten(&one), replays.is_unknown(&one));
                let found = unwritten_streams(tracees, pid, tid, vec![one]).into_iter();
                unwritten.extend(found.map(|mut one| {
                    one.is_unsure = (one.is_unsure || is_unknown) && !is_unwritten;
                    one
                }));
                is_unwritten
            }
        };
        known.extend(is_known.then_some(stream));
    }
    // A thread that waits for the global lock between its write and the note of it is not replayed to the note.
    mark_in_use(tracees, (pid, tid), &ProcessMemory { pid: tid }, &mut unwritten, &known);
    unwritten
}

/// Starts the replay of a CPython thread that was killed, if it may have been inside of a stream.
#[cfg(target_arch = "x86_64")]
pub(crate) fn start_replay(tracees: &Tracees, pid: u32, tid: u32) -> Option<Replay> {
    /// The part of a stack that is searched for a stream's address: a flush is a few calls deep.
    const STACK_BYTES: usize = 16 << 10;
    let (interpreter_code, streams) = tracees.interpreter_code(pid, tid)?;
    let memory = ProcessMemory { pid: tid };
    let in_stream = |thread: &&KilledThread| {
        let stack = memory.bytes(thread.stack_pointer(), STACK_BYTES);
        let words = stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.chain(thread.general_registers()).any(|word| streams.contains(&word))
    };
    let thread = tracees.processes.get(&pid)?.killed_threads.iter().find(in_stream)?;
    Replay::start(tid, thread, &interpreter_code)
}

/// Returns the unwritten bytes of a CPython process by the memory that the replay of its killed thread leaves.
#[cfg(target_arch = "x86_64")]
pub(crate) fn replayed_streams(
    tracees: &mut Tracees,
    pid: u32,
    before: &[PendingBytes],
    replayed: &ReplayedMemory,
) -> Vec<UnwrittenStream> {
    let pending = tracees.pending_in_memory(pid, replayed).into_iter();
    let of = |one: PendingBytes| UnwrittenStream {
        position: None,
        ..UnwrittenStream::of(&one, one.bytes.clone())
    };
    let mut unwritten: Vec<UnwrittenStream> = pending.map(of).collect();
    for ReplayedWrite { fd, bytes, .. } in replayed.writes.iter().rev() {
        match unwritten.iter_mut().find(|one| one.fd == *fd) {
            Some(one) => drop(one.bytes.splice(0..0, bytes.iter().copied())),
            None => {
                let (fd, bytes) = (*fd, bytes.clone());
                unwritten.push(UnwrittenStream::unknown(fd, bytes))
            }
        }
    }
    for one in &mut unwritten {
        let settled = tracees.settled_len(pid, (one.stream, None), one.fd, &one.bytes);
        one.bytes.drain(..settled);
    }
    let place = |one: UnwrittenStream| match before.iter().find(|known| known.fd == one.fd) {
        Some(known) => one.placed(known),
        None => one,
    };
    unwritten.into_iter().map(place).collect()
}
