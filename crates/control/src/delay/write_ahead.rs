//! Writes the pending bytes of a stopped process: out of the stream if that is safe, otherwise ahead of the program.

use weir_model::trace::RuntimeId;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;
use weir_sys::ptrace::registers::SyscallRegisters;
use weir_sys::syscalls;
use weir_walkers::{MemoryStore, PendingBytes};

use super::ahead_table::WrittenAhead;
use crate::foreign_file::TargetThread;
use crate::supervise::Tracees;

/// The activity of a stopped process's threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadActivity {
    /// A thread is in a write, whose bytes may be pending and written at the same time.
    Writing,
    /// All threads block in calls that do not write, and no other process shares their memory.
    Blocked,
    /// All threads are in calls that do not write, or return from one.
    InCalls,
    /// These threads are in user mode.
    Running(Vec<u32>),
}

pub(crate) fn thread_activity(tracees: &Tracees, pid: u32) -> ThreadActivity {
    let calls = tracees.thread_calls(pid);
    let writes = |call: &SyscallRegisters| syscalls::op(call.number).is_some_and(|op| op.writes());
    let mut sharing = tracees.processes.iter().filter(|(_, process)| process.memory_owner == pid);
    let skipping = sharing.clone().any(|(other, _)| tracees.in_skipped_call(*other));
    if skipping || calls.iter().any(|(_, call)| call.is_some_and(|call| writes(&call))) {
        return ThreadActivity::Writing;
    }
    let running: Vec<u32> = calls.iter().filter(|(_, call)| call.is_none()).map(|(tid, _)| *tid).collect();
    if !running.is_empty() {
        return ThreadActivity::Running(running);
    }
    let shared = sharing.any(|(other, _)| *other != pid);
    match calls.iter().all(|(_, call)| call.is_some_and(|call| is_interrupted(&call))) && !shared {
        true => ThreadActivity::Blocked,
        false => ThreadActivity::InCalls,
    }
}

/// Tells whether a call blocked when the stop came: its result is EINTR or one of the kernel's restart codes.
fn is_interrupted(call: &SyscallRegisters) -> bool {
    syscalls::RESTART_CODES.contains(&call.result) || call.result == -i64::from(libc::EINTR)
}

/// Writes the first `most` pending bytes of a stream, as many as its file takes now. With `empty` they are removed
/// from the stream if its walker can do that; otherwise they are written ahead.
pub(crate) fn drain_stream(
    tracees: &mut Tracees,
    pid: u32,
    thread: &TargetThread,
    pending: &PendingBytes,
    most: usize,
    empty: bool,
) {
    let before = tracees.written_ahead.prefix_len(pid, pending.stream, &pending.bytes);
    let new = pending.bytes.get(before..most).unwrap_or_default();
    if new.is_empty() && pending.walker == RuntimeId::GO {
        return;
    }
    let file = if new.is_empty() { None } else { tracees.open_ahead(pid, thread, pending) };
    let written = before + file.map_or(0, |file| tracees.write_ahead(pid, &file, new));
    let stores =
        if empty && pending.locked != Some(true) { stores_without_prefix(pending, written) } else { None };
    if let Some(stores) = stores.filter(|_| written > 0)
        && stores.iter().all(|store| ptrace::write_memory(thread.tid, store.address, &store.bytes))
    {
        return tracees.written_ahead.set(pid, WrittenAhead::of(pending, 0));
    }
    tracees.written_ahead.set(pid, WrittenAhead::of(pending, written));
}

/// Returns the memory changes that remove the first `len` bytes from a stream; None if its walker has none.
fn stores_without_prefix(pending: &PendingBytes, len: usize) -> Option<Vec<MemoryStore>> {
    if len == pending.bytes.len() {
        return Some(pending.drain_stores.clone()).filter(|stores| !stores.is_empty());
    }
    pending.partial_drain(len)
}

/// Removes written-ahead bytes from a process's streams if all its threads block.
pub(crate) fn reclaim_written_ahead(tracees: &mut Tracees, pid: u32) {
    if let (true, Some(tid)) = (tracees.hold(pid), tracees.live_thread(pid)) {
        let pending = tracees.pending(pid, tid);
        forget_purged(tracees, pid, tid, &pending);
        if thread_activity(tracees, pid) == ThreadActivity::Blocked {
            let thread = TargetThread::new(tid);
            for one in &pending {
                let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes);
                drain_stream(tracees, pid, &thread, one, ahead, true);
            }
        }
    }
    tracees.release(pid);
}

/// Forgets written-ahead bytes that the program has discarded, for example by fpurge(3). The process is stopped, and
/// `pending` are its pending bytes, read through its thread `tid`.
pub(crate) fn forget_purged(tracees: &mut Tracees, pid: u32, tid: u32, pending: &[PendingBytes]) {
    let memory = ProcessMemory { pid: tid };
    let partly_read = tracees.processes.get(&pid).is_some_and(|process| process.partly_read);
    let streams = tracees.written_ahead.streams(pid);
    let is_listed = |one: &WrittenAhead| pending.iter().any(|known| known.stream == one.stream);
    let is_found = |one: &WrittenAhead| one.data_address.is_some() && !is_listed(one);
    let empty = if streams.into_iter().any(is_found) { tracees.empty_streams(pid, tid) } else { Vec::new() };
    let is_in_place = |one: &WrittenAhead, address| memory.bytes(address, one.bytes.len()) == one.bytes;
    tracees.written_ahead.retain(pid, |one| match pending.iter().find(|known| known.stream == one.stream) {
        // The search can find the old copy of a Writer on a stack, with fewer bytes.
        _ if one.is_of_go => one.data_address.is_some_and(|address| is_in_place(one, address)),
        Some(known) => known.bytes.starts_with(&one.bytes),
        None if partly_read => true,
        // A search can miss a stream that still has the bytes. It has none of them if others are at their place, or if
        // the stream was found and is empty.
        None => {
            one.data_address.is_some_and(|address| !empty.contains(&one.stream) && is_in_place(one, address))
        }
    });
}
