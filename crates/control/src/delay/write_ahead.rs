//! Writes the pending bytes of a stopped process, and removes them from the stream if that is safe. Otherwise they are written
//! ahead of the program.

use weir_model::trace::RuntimeId;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;
use weir_sys::ptrace::registers::SyscallRegisters;
use weir_sys::syscalls;
use weir_walkers::{PendingBytes, join_pending, runtime_by_id};

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
    let skipping = sharing.any(|(other, _)| tracees.in_skipped_call(*other));
    if skipping || calls.iter().any(|(_, call)| call.is_some_and(|call| writes(&call))) {
        return ThreadActivity::Writing;
    }
    let running: Vec<u32> = calls.iter().filter(|(_, call)| call.is_none()).map(|(tid, _)| *tid).collect();
    if !running.is_empty() {
        return ThreadActivity::Running(running);
    }
    match calls.iter().all(|(_, call)| call.is_some_and(|call| is_interrupted(&call)))
        && !tracees.shares_memory(pid)
    {
        true => ThreadActivity::Blocked,
        false => ThreadActivity::InCalls,
    }
}

/// Returns whether a call blocked when the stop came: its result is EINTR or one of the kernel's restart codes.
pub(crate) fn is_interrupted(call: &SyscallRegisters) -> bool {
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
    let (stream, is_joined) = (pending.stream, pending.joined.is_some());
    if tracees.written_ahead.has_unread_outer(pid, stream, &pending.bytes, is_joined)
        || tracees.written_ahead.is_handed_over(pid, stream, &pending.bytes)
    {
        return;
    }
    let before = tracees.written_ahead.prefix_len(pid, pending.stream, &pending.bytes);
    let new = pending.bytes.get(before..most).unwrap_or_default();
    if new.is_empty() && pending.walker == RuntimeId::GO {
        return;
    }
    let file = if new.is_empty() { None } else { tracees.open_unless_messages(pid, thread, pending) };
    if file.as_ref().is_some_and(|file| file.begins_with_long_record(new)) {
        tracees.note_refusal(pid, thread.tid, pending.fd, "a record is too long for one write to a pipe");
    }
    let written = before + file.map_or(0, |file| tracees.write_ahead(pid, &file, new));
    let stores = if empty && pending.locked != Some(true) { pending.stores_without(written) } else { None };
    if let Some(stores) = stores.filter(|_| written > 0)
        && stores.iter().all(|store| ptrace::write_memory(thread.tid, store.address, &store.bytes))
    {
        return tracees.written_ahead.set(pid, WrittenAhead::of(pending, 0));
    }
    tracees.written_ahead.set(pid, WrittenAhead::of(pending, written));
}

/// Removes written-ahead bytes from a process's streams if all its threads block.
pub(crate) fn reclaim_written_ahead(tracees: &mut Tracees, pid: u32) {
    if let (true, Some(tid)) = (tracees.hold(pid), tracees.live_thread(pid)) {
        let pending = join_pending(tracees.pending_when_held(pid, tid));
        forget_purged(tracees, pid, tid, &pending);
        if thread_activity(tracees, pid) == ThreadActivity::Blocked {
            let thread = TargetThread::new(tid);
            for one in &pending {
                if is_handing_over(tracees, pid, one) || is_in_use(one) {
                    continue;
                }
                let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes);
                drain_stream(tracees, pid, &thread, one, ahead, true);
            }
        }
    }
    tracees.release(pid);
}

/// Returns whether a thread of a stopped process may be moving the bytes of a stream to its inner one: it holds the lock of the
/// inner stream, or has just released that lock and wakes another thread.
pub(crate) fn is_handing_over(tracees: &Tracees, pid: u32, one: &PendingBytes) -> bool {
    let Some(inner) = one.joined.as_ref().and_then(|joined| joined.then().inner) else { return false };
    let wakes = |call: &SyscallRegisters| call.number == libc::SYS_futex && call.args[0] == inner.lock;
    one.locked != Some(false)
        || tracees.thread_calls(pid).iter().any(|(_, call)| call.as_ref().is_some_and(wakes))
}

/// Returns whether a thread is inside a stream of a runtime with a global lock. Between its write and the note of it in the stream
/// the thread may wait for the global lock while others run, so the progress of the others shows nothing about this thread.
pub(crate) fn is_in_use(one: &PendingBytes) -> bool {
    let has_global_lock =
        || runtime_by_id(one.walker).is_some_and(|runtime| runtime.facts.limits.has_global_lock);
    one.locked == Some(true) && has_global_lock()
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
    let waits = |call: &SyscallRegisters| call.number == libc::SYS_futex;
    let has_waiter = tracees.thread_calls(pid).iter().any(|(_, call)| call.as_ref().is_some_and(waits));
    let is_active = thread_activity(tracees, pid) != ThreadActivity::Blocked;
    let may_hand_over = has_waiter || is_active;
    let is_in_place = |one: &WrittenAhead, address| memory.bytes(address, one.bytes.len()) == one.bytes;
    tracees.written_ahead.retain(pid, |one| match pending.iter().find(|known| known.stream == one.stream) {
        // The search can find the old copy of a Writer on a stack, with fewer bytes.
        _ if one.is_of_go => one.data_address.is_some_and(|address| is_in_place(one, address)),
        known if one.joined.is_some() => is_joined_in_place(one, known, &memory),
        // CPython discards nothing, except after an error. A thread that hands bytes over runs, or waits for the buffer's lock.
        _ if one.is_of_cpython && may_hand_over => true,
        Some(known) => known.bytes.starts_with(&one.bytes),
        None if partly_read => true,
        // glibc's fclose(3) takes a stream off the list of all streams before it writes the bytes.
        None if one.data_address.is_none() && is_active => true,
        // A search can miss a stream that still has the bytes. It has none of them if others are at their place, or if
        // the stream was found and is empty.
        None => {
            one.data_address.is_some_and(|address| !empty.contains(&one.stream) && is_in_place(one, address))
        }
    });
}

/// Returns whether two joined streams still hold their written-ahead bytes. `known` is the stream that was read; None if it has
/// no pending bytes. The search can miss the outer one, as after a move: the inner one is then read alone. While its lock is held,
/// a thread may be between the write of its bytes and the note of it, so that it seems to hold other bytes than those ahead.
fn is_joined_in_place(one: &WrittenAhead, known: Option<&PendingBytes>, memory: &ProcessMemory) -> bool {
    let is_moving = known.is_some_and(|known| known.locked != Some(false));
    let read = known.map_or(&[][..], |known| &known.bytes);
    let is_rest_in_place = || {
        let rest = one.bytes.starts_with(read).then(|| one.outer_bytes(read.len())).flatten();
        rest.is_some_and(|(address, bytes)| memory.bytes(address, bytes.len()) == bytes)
    };
    is_moving || read.starts_with(&one.bytes) || is_rest_in_place()
}

/// Removes written-ahead bytes from the streams of a process whose only thread is at the entry of a call that does not write.
pub(crate) fn reclaim_at_call(tracees: &mut Tracees, pid: u32, tid: u32) {
    if tracees.live_threads(pid).any(|other| other != tid) || tracees.shares_memory(pid) {
        return;
    }
    let pending = join_pending(tracees.pending_when_held(pid, tid));
    forget_purged(tracees, pid, tid, &pending);
    for one in &pending {
        let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes);
        drain_stream(tracees, pid, &TargetThread::new(tid), one, ahead, true);
    }
}
