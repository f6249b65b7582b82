//! Finds out how many of a dying process's pending bytes are already written, by the last write of each of its threads and
//! by what weir has written ahead.

use weir_sys::memory::{Memory, ProcessMemory};
pub(crate) use weir_sys::ptrace::last_write::LastWrite;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_walkers::{InnerStream, PendingBytes};

use crate::delay::skip::SkippedCall;
use crate::supervise::Tracees;

/// Reads the last write of a thread in its exit stop.
pub(crate) fn read(tid: u32, skipped_call: Option<&SkippedCall>) -> Option<LastWrite> {
    match skipped_call {
        Some(skipped_call) => Some(of_skipped_call(tid, skipped_call, registers::current_syscall(tid))),
        None => LastWrite::of_thread(tid),
    }
}

/// As [`read`], of a thread that has ended with these registers. The memory is read through the thread `tid`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn of_registers(
    tid: u32,
    skipped_call: Option<&SkippedCall>,
    ended_with: &libc::user_regs_struct,
) -> Option<LastWrite> {
    match skipped_call {
        Some(skipped_call) => Some(of_skipped_call(tid, skipped_call, registers::syscall_of(ended_with))),
        None => LastWrite::of_registers(tid, ended_with),
    }
}

fn of_skipped_call(tid: u32, skipped_call: &SkippedCall, call: Option<SyscallRegisters>) -> LastWrite {
    let result = call.map_or(0, |call| call.result.max(0) as u64);
    let (fd, segments, skipped_bytes) = skipped_call.requested(tid);
    LastWrite::InCall { fd, segments, bytes: skipped_bytes + result }
}

/// Returns how many of a stream's first pending bytes are written.
pub(crate) fn written_len(tracees: &Tracees, pid: u32, tid: u32, pending: &PendingBytes) -> usize {
    let length = pending.bytes.len() as u64;
    let written = |last_write: &LastWrite| match (last_write, pending.data_address) {
        (LastWrite::InCall { fd, .. }, Some(address)) if *fd == pending.fd => {
            last_write.written_at(address, length).unwrap_or(0)
        }
        _ => last_write.written_of(tid, pending.fd, &pending.bytes, length),
    };
    let ahead = match &pending.inner {
        Some(inner) => {
            let before = unwritten_inner(tracees, pid, tid, pending.fd, inner);
            tracees.written_ahead.outer_prefix_len(pid, inner.address, before, &pending.bytes)
        }
        None => tracees.written_ahead.prefix_len(pid, pending.stream, &pending.bytes),
    };
    last_writes(tracees, pid).map(written).max().map_or(0, |bytes| bytes as usize).max(ahead)
}

fn last_writes(tracees: &Tracees, pid: u32) -> impl Iterator<Item = &LastWrite> {
    tracees.processes.get(&pid).into_iter().flat_map(|process| &process.last_writes)
}

/// Returns how many bytes of an inner stream the last writes have not written. What a write has written is no longer among the
/// bytes that are written ahead, although the stream may not have noted it.
fn unwritten_inner(tracees: &Tracees, pid: u32, tid: u32, fd: i32, inner: &InnerStream) -> u64 {
    let [(start, end), _] = inner.areas;
    let length = inner.pending_bytes.min(end.saturating_sub(start));
    let begin = ProcessMemory { pid: tid }.bytes(start, length as usize);
    let written = last_writes(tracees, pid).map(|one| one.written_of(tid, fd, &begin, length)).max();
    inner.pending_bytes - written.unwrap_or(0)
}
