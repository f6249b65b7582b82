//! The last write of a thread in its exit stop, by its registers.
//!
//! A stream keeps its bytes until its write(2) has returned. The registers of a thread that ended inside the call tell
//! how many bytes it wrote. The registers of a thread that ended right after the call still hold its arguments.

use crate::iovec;
use crate::memory::{Memory, ProcessMemory};
use crate::ptrace::interrupted_write;
use crate::ptrace::registers::{self, AfterSyscall, SyscallRegisters};
use crate::syscalls::SYSCALL_CODE;

/// The most segments of a vector that are examined. The bytes of a stream are in the first ones: a file buffer writes two.
pub const MAX_SEGMENTS: usize = 64;

/// The last write of a thread in its exit stop.
#[derive(Debug)]
pub enum LastWrite {
    /// The thread ended in a call, or right before it, that wrote `bytes` of `segments` (addresses and lengths) to `fd`.
    #[allow(missing_docs)]
    InCall { fd: i32, segments: Vec<(u64, u64)>, bytes: u64 },
    /// The thread ended in user mode, with these registers.
    InUserMode(AfterSyscall),
}

impl LastWrite {
    /// Reads the last write of a thread in its exit stop. A write of 0 bytes counts, too: it may be the second one after a short
    /// write, and its address shows what the first one has written.
    #[cfg(target_arch = "x86_64")]
    pub fn of_thread(tid: u32) -> Option<LastWrite> {
        LastWrite::of_registers(tid, &super::registers(tid)?)
    }

    /// Reads the last write of a thread in its exit stop. A write of 0 bytes counts, too: it may be the second one after a short
    /// write, and its address shows what the first one has written.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn of_thread(tid: u32) -> Option<LastWrite> {
        match registers::current_syscall(tid) {
            Some(call) => in_call(tid, &call),
            None => registers::after_syscall(tid).map(LastWrite::InUserMode),
        }
    }

    /// Returns the last write of a thread that has ended with these registers. The memory is read through the thread `tid`.
    #[cfg(target_arch = "x86_64")]
    pub fn of_registers(tid: u32, ended_with: &libc::user_regs_struct) -> Option<LastWrite> {
        match registers::syscall_of(ended_with) {
            Some(call) => in_call(tid, &call),
            None => registers::next_syscall_of(tid, ended_with)
                .and_then(|call| in_call(tid, &call))
                .or_else(|| registers::after_syscall_of(ended_with).map(LastWrite::InUserMode)),
        }
    }

    /// As [`LastWrite::of_thread`], with the write after which the thread executes a signal handler.
    pub fn all_of_thread(tid: u32) -> impl Iterator<Item = LastWrite> {
        LastWrite::of_thread(tid).into_iter().chain(interrupted_write::of_thread(tid))
    }

    /// Returns how many of the bytes at an address were written; None if the call did not write them.
    pub fn written_at(&self, address: u64, length: u64) -> Option<u64> {
        let LastWrite::InCall { segments, bytes, .. } = self else { return None };
        let first = segments.iter().find(|segment| segment.1 > 0)?;
        let before = first.0.checked_sub(address).filter(|before| *before < length)?;
        Some((before + bytes).min(length))
    }

    /// Returns how many of a stream's `length` pending bytes were written to its descriptor. `begin`: the first of the pending
    /// bytes. The memory is read through the thread `tid`.
    pub fn written_of(&self, tid: u32, stream_fd: i32, begin: &[u8], length: u64) -> u64 {
        let memory = ProcessMemory { pid: tid };
        match self {
            LastWrite::InCall { fd, segments, bytes } if *fd == stream_fd => {
                if let Some(before) = bytes_before_rest(&memory, segments, begin, length) {
                    return (before + bytes).min(length);
                }
                let first = first_bytes(&memory, segments, begin.len());
                let is_same = !first.is_empty() && begin.starts_with(&first);
                if is_same { (*bytes).min(length) } else { 0 }
            }
            LastWrite::InUserMode(registers) if has_just_written(&memory, registers, begin, length) => length,
            _ => 0,
        }
    }
}

/// Returns how many of a stream's `length` pending bytes an earlier, short write has written, if this call writes the rest of them:
/// the stream notes a short write only when all is written. None if the call writes other bytes.
fn bytes_before_rest(memory: &dyn Memory, segments: &[(u64, u64)], begin: &[u8], length: u64) -> Option<u64> {
    let &(address, rest) = segments.iter().find(|segment| segment.1 > 0)?;
    let before = length.checked_sub(rest).filter(|before| *before > 0)?;
    let is_begin = memory.bytes(address.checked_sub(before)?, begin.len()) == begin;
    (is_begin && !begin.is_empty()).then_some(before)
}

fn in_call(tid: u32, call: &SyscallRegisters) -> Option<LastWrite> {
    let writes = call.number == libc::SYS_write || call.number == libc::SYS_writev;
    let bytes = writes.then(|| u64::try_from(call.result).unwrap_or(0))?;
    let segments = write_segments(&ProcessMemory { pid: tid }, call.number, &call.args);
    Some(LastWrite::InCall { fd: call.args[0] as i32, segments, bytes })
}

/// Returns the addresses and lengths that a write(2) or writev(2) writes.
pub fn write_segments(memory: &ProcessMemory, number: i64, args: &[u64; 6]) -> Vec<(u64, u64)> {
    if number == libc::SYS_write {
        return vec![(args[1], args[2])];
    }
    iovec::read(memory, args[1], args[2], MAX_SEGMENTS)
}

/// Reads the first bytes of these segments, at most `most`, up to the first that cannot be read.
pub fn first_bytes(memory: &ProcessMemory, segments: &[(u64, u64)], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (address, length) in segments {
        let wanted = (most - bytes.len()).min(*length as usize);
        let read = memory.bytes(*address, wanted);
        let is_whole = read.len() == wanted;
        bytes.extend(read);
        if !is_whole {
            break;
        }
    }
    bytes
}

/// Returns whether a thread has just returned from writing exactly `length` bytes, which begin with `begin`.
///
/// Three facts show it: the instruction before the last return address is SYSCALL; the second argument still points
/// to the bytes, or to a vector that begins with them; and a register still holds the number of written bytes. A few
/// instructions after the stream has noted the write, all three are gone.
pub fn has_just_written(memory: &ProcessMemory, registers: &AfterSyscall, begin: &[u8], length: u64) -> bool {
    let mut instruction = [0; 2];
    let is_read = memory.read(registers.returned_to.wrapping_sub(2), &mut instruction) == 2;
    if !is_read || instruction != SYSCALL_CODE {
        return false;
    }
    let written = |address, number: u64| {
        registers.general.contains(&number) && memory.bytes(address, begin.len()) == begin
    };
    if written(registers.second_arg, length) {
        return true;
    }
    let segments = iovec::read(memory, registers.second_arg, 2, MAX_SEGMENTS);
    let first = segments.first().filter(|first| first.1 == length);
    let total = segments.iter().fold(0, |total: u64, segment| total.wrapping_add(segment.1));
    first.is_some_and(|first| written(first.0, total))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub const BASE: u64 = 0x10_0000;

    /// Memory at [`BASE`].
    pub struct Bytes(pub Vec<u8>);

    impl Memory for Bytes {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            let Some(from) = address.checked_sub(BASE).and_then(|at| self.0.get(at as usize..)) else {
                return 0;
            };
            let bytes = from.len().min(into.len());
            into[..bytes].copy_from_slice(&from[..bytes]);
            bytes
        }
    }

    #[test]
    fn the_rest_after_a_short_write_shows_what_was_written_before() {
        let memory = Bytes((0..100).collect());
        let begin: Vec<u8> = (0..16).collect();
        let before = |address, rest| bytes_before_rest(&memory, &[(0, 0), (address, rest)], &begin, 100);
        assert_eq!(before(BASE + 40, 60), Some(40));
        let others = [(BASE, 100), (BASE + 40, 61), (BASE + 41, 60), (BASE, 200), (8, 60), (u64::MAX, 60)];
        assert_eq!(others.map(|(address, rest)| before(address, rest)), [None; 6]);
        assert_eq!(bytes_before_rest(&memory, &[], &begin, 100), None);
        assert_eq!(bytes_before_rest(&memory, &[(BASE + 40, 60)], &[], 100), None);
    }

    /// A buffer of zeros has its first bytes everywhere.
    #[test]
    fn the_rest_of_equal_bytes_is_not_taken_for_the_first_ones() {
        let memory = Bytes(vec![0; 100]);
        assert_eq!(bytes_before_rest(&memory, &[(BASE + 40, 60)], &[0; 16], 100), Some(40));
    }
}
