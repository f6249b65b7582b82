//! Finds the streams inside of which a thread was killed, by their locks.

use weir_sys::memory::Memory;
use weir_sys::proc;

use super::UnwrittenStream;
use super::last_write::LastWrite;
use crate::supervise::Tracees;

/// Marks the bytes of streams inside of which one of several threads was killed, as `memory` shows. Only for a thread that was in a
/// write is it known which bytes are written: after the write the thread may wait for the global lock. Reports these streams. Leaves
/// out the streams `known`, whose written bytes a replay has shown.
pub(super) fn mark_in_use(
    tracees: &mut Tracees,
    (pid, tid): (u32, u32),
    memory: &dyn Memory,
    unwritten: &mut [UnwrittenStream],
    known: &[u64],
) {
    let mut in_use = tracees.streams_in_use(pid, memory);
    in_use.retain(|(stream, _)| !known.contains(stream));
    let last_writes = tracees.processes.get(&pid).into_iter().flat_map(|process| &process.last_writes);
    let written: Vec<i32> = last_writes
        .filter_map(|last| match last {
            LastWrite::InCall { fd, .. } => Some(*fd),
            LastWrite::InUserMode(_) => None,
        })
        .collect();
    let is_in_use = |one: &&mut UnwrittenStream| in_use.iter().any(|(stream, _)| *stream == one.stream);
    for one in unwritten.iter_mut().filter(is_in_use) {
        one.is_unsure |= !written.contains(&one.fd);
    }
    for path in in_use.iter().filter_map(|(_, fd)| proc::descriptor(tid, *fd)) {
        tracees.add_limitation(format!(
            "{}: one of several threads was killed inside of a stream: bytes that it was moving to {path} may be lost",
            proc::label(pid)
        ));
    }
}
