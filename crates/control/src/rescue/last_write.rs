//! Finds out how many of a dying process's pending bytes are already written.
//!
//! A stream keeps its bytes until its write(2) has returned. The registers of a thread that ended inside the call tell
//! how many bytes it wrote. The registers of a thread that ended right after the call still hold its arguments.

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_walkers::PendingBytes;

use crate::delay::skip::{self, SkippedCall};
use crate::supervise::Tracees;

/// The last write of a thread in its exit stop.
#[derive(Debug)]
pub(crate) enum LastWrite {
    /// The thread ended in a call that wrote `bytes` of `parts` (addresses and lengths) to `fd`.
    InCall { fd: i32, parts: Vec<(u64, u64)>, bytes: u64 },
    /// The thread ended in user mode, with these registers.
    InUserMode(registers::AfterSyscall),
}

impl LastWrite {
    /// Returns how many of the bytes at an address were written; None if the call did not write them.
    pub fn written_at(&self, address: u64, length: u64) -> Option<u64> {
        let LastWrite::InCall { parts, bytes, .. } = self else { return None };
        let before =
            parts.iter().find(|part| part.1 > 0)?.0.checked_sub(address).filter(|before| *before < length)?;
        Some((before + bytes).min(length))
    }
}

/// Reads the last write of a thread in its exit stop.
pub(crate) fn read(tid: u32, skipped_call: Option<&SkippedCall>) -> Option<LastWrite> {
    if let Some(skipped_call) = skipped_call {
        let result = registers::current_syscall(tid).map_or(0, |call| call.result.max(0) as u64);
        let (fd, parts, skipped_bytes) = skipped_call.requested(tid);
        return Some(LastWrite::InCall { fd, parts, bytes: skipped_bytes + result });
    }
    match registers::current_syscall(tid) {
        Some(call) => in_call(tid, &call),
        None => registers::after_syscall(tid).map(LastWrite::InUserMode),
    }
}

fn in_call(tid: u32, call: &SyscallRegisters) -> Option<LastWrite> {
    let writes = call.number == libc::SYS_write || call.number == libc::SYS_writev;
    let bytes = u64::try_from(call.result).ok().filter(|bytes| writes && *bytes > 0)?;
    let parts = skip::write_parts(&ProcessMemory { pid: tid }, call.number, &call.args);
    Some(LastWrite::InCall { fd: call.args[0] as i32, parts, bytes })
}

/// Returns how many of a stream's first pending bytes are written.
pub(crate) fn written_len(tracees: &Tracees, pid: u32, tid: u32, pending: &PendingBytes) -> usize {
    let memory = ProcessMemory { pid: tid };
    let ahead = tracees.written_ahead.prefix_len(pid, pending.stream, &pending.bytes);
    let last_writes = tracees.processes.get(&pid).into_iter().flat_map(|process| &process.last_writes);
    let written = |last_write: &LastWrite| match last_write {
        LastWrite::InCall { fd, .. } if *fd == pending.fd && pending.data_address.is_some() => {
            let length = pending.bytes.len() as u64;
            pending.data_address.and_then(|address| last_write.written_at(address, length)).unwrap_or(0)
                as usize
        }
        LastWrite::InCall { fd, parts, bytes } if *fd == pending.fd => {
            let first = skip::first_bytes(&memory, parts, pending.bytes.len());
            let same = !first.is_empty() && pending.bytes.starts_with(&first);
            if same { (*bytes as usize).min(first.len()) } else { 0 }
        }
        LastWrite::InCall { .. } => 0,
        LastWrite::InUserMode(registers) if has_just_written(&memory, registers, &pending.bytes) => {
            pending.bytes.len()
        }
        LastWrite::InUserMode(_) => 0,
    };
    last_writes.map(written).max().unwrap_or(0).max(ahead)
}

/// Tells whether a thread has just returned from writing exactly these bytes.
///
/// Three facts show it: the instruction before the last return address is SYSCALL; the second argument still points
/// to the bytes, or to a vector that begins with them; and a register still holds the number of written bytes. A few
/// instructions after the stream has noted the write, all three are gone.
fn has_just_written(memory: &ProcessMemory, registers: &registers::AfterSyscall, bytes: &[u8]) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let mut instruction = [0; 2];
    let is_read = memory.read(registers.returned_to.wrapping_sub(2), &mut instruction) == 2;
    if !is_read || instruction != SYSCALL {
        return false;
    }
    let length = bytes.len() as u64;
    let written = |address, number: u64| {
        registers.general.contains(&number) && memory.bytes(address, bytes.len()) == bytes
    };
    if written(registers.second_arg, length) {
        return true;
    }
    let parts = skip::parse_vector(&memory.bytes(registers.second_arg, 32));
    let first = parts.first().filter(|first| first.1 == length);
    first.is_some_and(|first| written(first.0, parts.iter().map(|part| part.1).fold(0, u64::wrapping_add)))
}
