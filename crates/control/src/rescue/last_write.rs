//! How much of what a dying process's stream holds has been written all the same.
//!
//! A stream holds its bytes until its write(2) has come back. A thread that is ended inside that call shows by its
//! registers how many bytes went; one that is ended right behind it, by what they hold still.

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_walkers::Pending;

use crate::delay::skip::SkippedCall;
use crate::supervise::tracees::Tracees;

/// What a thread that was ended had written, or was about to have written.
#[derive(Debug)]
pub(crate) enum LastWrite {
    /// So many bytes of these parts, to this descriptor.
    Wrote { fd: i32, parts: Vec<(u64, u64)>, bytes: u64 },
    /// It was in its program; its registers.
    Behind(registers::AfterSyscall),
}

impl LastWrite {
    /// How much of the bytes at an address was written when the thread was ended; None: it was not writing these.
    pub fn wrote_of(&self, at: u64, length: u64) -> Option<u64> {
        let LastWrite::Wrote { parts, bytes, .. } = self else { return None };
        let before = parts.first()?.0.checked_sub(at).filter(|before| *before < length)?;
        Some((before + bytes).min(length))
    }
}

/// Of a thread in its exit stop.
pub(crate) fn last(tid: u32, inside: Option<&SkippedCall>) -> Option<LastWrite> {
    if let Some(skip) = inside {
        let result = registers::call(tid).map_or(0, |call| call.result.max(0) as u64);
        let (fd, parts, skipped) = skip.asked(tid);
        return Some(LastWrite::Wrote { fd, parts, bytes: skipped + result });
    }
    match registers::call(tid) {
        Some(call) => wrote(tid, &call),
        None => registers::behind(tid).map(LastWrite::Behind),
    }
}

fn wrote(tid: u32, call: &SyscallRegisters) -> Option<LastWrite> {
    let writes = call.number == libc::SYS_write || call.number == libc::SYS_writev;
    let bytes = u64::try_from(call.result).ok().filter(|bytes| writes && *bytes > 0)?;
    let parts = crate::delay::skip::parts(&ProcessMemory { pid: tid }, call.number, &call.args);
    Some(LastWrite::Wrote { fd: call.args[0] as i32, parts, bytes })
}

/// How many of the first bytes that wait in a stream have been written.
pub(crate) fn written(world: &Tracees, pid: u32, tid: u32, pending: &Pending) -> usize {
    let memory = ProcessMemory { pid: tid };
    let ahead = world.written.of(pid, pending.stream, &pending.bytes);
    let lasts = world.processes.get(&pid).into_iter().flat_map(|process| &process.lasts);
    let of = |last: &LastWrite| match last {
        LastWrite::Wrote { fd, parts, bytes } if *fd == pending.fd => {
            let whole = crate::delay::skip::beginning(&memory, parts, pending.bytes.len());
            let begins = !whole.is_empty() && pending.bytes.starts_with(&whole);
            if begins { (*bytes as usize).min(whole.len()) } else { 0 }
        }
        LastWrite::Wrote { .. } => 0,
        LastWrite::Behind(behind) if is_behind(&memory, behind, &pending.bytes) => pending.bytes.len(),
        LastWrite::Behind(_) => 0,
    };
    lasts.map(of).max().unwrap_or(0).max(ahead)
}

/// Whether the thread has just come back from writing these bytes: the instruction before the one to which its
/// last call returned is a system call's, its second argument is still where the bytes are, or where a vector is
/// that begins with them, and the number of all that was written is still in a register. All of that is gone a few
/// instructions after the stream has taken notice of the write.
fn is_behind(memory: &ProcessMemory, behind: &registers::AfterSyscall, bytes: &[u8]) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let mut instruction = [0; 2];
    let called = memory.read(behind.returned_to.wrapping_sub(2), &mut instruction) == 2;
    if !called || instruction != SYSCALL {
        return false;
    }
    let length = bytes.len() as u64;
    let of =
        |address, number: u64| behind.all.contains(&number) && memory.bytes(address, bytes.len()) == bytes;
    if of(behind.second, length) {
        return true;
    }
    let parts = crate::delay::skip::vector(&memory.bytes(behind.second, 32));
    let first = parts.first().filter(|first| first.1 == length);
    first.is_some_and(|first| of(first.0, parts.iter().map(|part| part.1).fold(0, u64::wrapping_add)))
}
