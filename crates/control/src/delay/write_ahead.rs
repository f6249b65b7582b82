//! Bringing out what waits in the streams of a process that is held: out of the stream where that is safe, else
//! ahead of it.

use weir_sys::ptrace;
use weir_sys::ptrace::registers::SyscallRegisters;
use weir_sys::syscalls;
use weir_walkers::{Pending, Store};

use crate::supervise::tracee_file::TraceeFile;
use crate::supervise::tracees::Tracees;

/// What the threads of a held process are doing, as far as it matters to their streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadActivity {
    /// One of them is writing: what it writes may be in a stream still, and be written already.
    Writing,
    /// All of them wait in calls that do not write, and nobody else uses their memory.
    Waiting,
    /// All of them are in calls that do not write, or on their way back from one.
    Calling,
    /// These are in their program.
    Running(Vec<u32>),
}

pub(crate) fn doing(world: &Tracees, pid: u32) -> ThreadActivity {
    let calls = world.calls(pid);
    let number_writes = |call: &SyscallRegisters| syscalls::op(call.number).is_some_and(|op| op.writes());
    let skips =
        world.processes.iter().any(|(other, process)| process.owner == pid && world.is_skipping(*other));
    if skips || calls.iter().any(|(_, call)| call.is_some_and(|call| number_writes(&call))) {
        return ThreadActivity::Writing;
    }
    let running: Vec<u32> = calls.iter().filter(|one| one.1.is_none()).map(|one| one.0).collect();
    if !running.is_empty() {
        return ThreadActivity::Running(running);
    }
    let shared = world.processes.iter().any(|(other, process)| *other != pid && process.owner == pid);
    let waits = |call: &SyscallRegisters| {
        (-516..=-512).contains(&call.result) || call.result == -i64::from(libc::EINTR)
    };
    match calls.iter().all(|(_, call)| call.is_some_and(|call| waits(&call))) && !shared {
        true => ThreadActivity::Waiting,
        false => ThreadActivity::Calling,
    }
}

/// Writes the first `most` bytes of what waits in a stream, as far as its file takes them now. With `empty` they
/// are taken out of the stream where it can be emptied; else they have been written ahead.
pub(crate) fn bring_out(
    world: &mut Tracees,
    pid: u32,
    tid: u32,
    pending: &Pending,
    most: usize,
    empty: bool,
) {
    let before = world.written.of(pid, pending.stream, &pending.bytes);
    let new = pending.bytes.get(before..most).unwrap_or_default();
    let taken = match TraceeFile::of(tid, pending.fd) {
        // The error is the program's to see: its own write will meet it.
        Ok(sink) if sink.takes_ahead() => before + sink.put(new).0,
        _ => before,
    };
    world.written.bytes += (taken - before) as u64;
    let stores = if empty && pending.locked != Some(true) { without(pending, taken) } else { None };
    if let Some(stores) = stores.filter(|_| taken > 0)
        && stores.iter().all(|store| ptrace::write_memory(tid, store.address, &store.bytes))
    {
        return world.written.set(pid, pending.stream, pending.fd, &[]);
    }
    world.written.set(pid, pending.stream, pending.fd, &pending.bytes[..taken]);
}

/// What makes the stream be without its first `taken` bytes.
fn without(pending: &Pending, taken: usize) -> Option<Vec<Store>> {
    if taken == pending.bytes.len() {
        return Some(pending.emptied.clone()).filter(|stores| !stores.is_empty());
    }
    pending.left_after(taken)
}

/// Takes what was written ahead of a process out of its streams, if it waits in calls now.
pub(crate) fn settle(world: &mut Tracees, pid: u32) {
    if let (true, Some(tid)) = (world.hold(pid), world.task(pid)) {
        let pending = world.pending(pid, tid);
        forget_purged(world, pid, &pending);
        if doing(world, pid) == ThreadActivity::Waiting {
            for one in &pending {
                let ahead = world.written.of(pid, one.stream, &one.bytes);
                bring_out(world, pid, tid, one, ahead, true);
            }
        }
    }
    world.release(pid);
}

/// A program may throw away what waits in a stream (fpurge, fclose of a descriptor that is closed).
pub(crate) fn forget_purged(world: &mut Tracees, pid: u32, pending: &[Pending]) {
    world.written.keep(pid, |stream, bytes| {
        pending.iter().any(|one| one.stream == stream && one.bytes.starts_with(bytes))
    });
}
