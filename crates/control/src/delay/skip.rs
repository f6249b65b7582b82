//! Skips bytes that were written ahead when the program writes them itself.

use weir_sys::iovec::{self, IOVEC_BYTES};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::open_files::fdinfo;
use weir_sys::ptrace::last_write::{MAX_SEGMENTS, first_bytes, write_segments};
use weir_sys::ptrace::registers;
use weir_sys::ptrace::{self, SyscallStop, same_file};
use weir_sys::syscalls;
use weir_walkers::WriteEpoch;

use super::ahead_table::WrittenAhead;
#[cfg(target_arch = "x86_64")]
use crate::rescue::killed_thread::KilledThread;
use crate::supervise::Tracees;

/// A system call whose registers or vector weir has changed.
#[derive(Debug)]
pub(crate) struct SkippedCall {
    args: [u64; 6],
    /// The bytes that the call does not write, because they were written ahead.
    skipped_bytes: u64,
    /// The call had no other bytes to write, and is not made.
    suppressed: bool,
    /// For lseek(2): the difference between the file's offset and the program's view of it.
    position_offset: u64,
    is_vector: bool,
    /// The vector's address and former bytes, to be restored.
    saved_vector: Option<(u64, Vec<u8>)>,
}

impl SkippedCall {
    /// Returns an lseek(2) whose offset differs from the program's view of it; None for no difference.
    fn of_position(args: [u64; 6], position_offset: u64) -> Option<SkippedCall> {
        (position_offset > 0).then_some(SkippedCall {
            args,
            skipped_bytes: 0,
            suppressed: false,
            position_offset,
            is_vector: false,
            saved_vector: None,
        })
    }

    /// Returns a killed thread as it would be after the write of `bytes`; None for other calls than write(2).
    #[cfg(target_arch = "x86_64")]
    pub fn thread_after_return(&self, thread: KilledThread, bytes: u64) -> Option<KilledThread> {
        (self.skipped_bytes > 0 && !self.is_vector).then(|| thread.with_write(self.args, bytes))
    }

    /// Returns the program's descriptor and segments, and how many of their bytes are skipped.
    pub fn requested(&self, tid: u32) -> (i32, Vec<(u64, u64)>, u64) {
        let segments = match &self.saved_vector {
            Some((_, saved)) => iovec::parse(saved),
            None if self.is_vector => {
                write_segments(&ProcessMemory { pid: tid }, libc::SYS_writev, &self.args)
            }
            None => vec![(self.args[1], self.args[2])],
        };
        (self.args[0] as i32, segments, self.skipped_bytes)
    }
}

/// Handles a system call's entry in a process with written-ahead bytes. Returns the call if it was changed.
pub(crate) fn at_entry(tracees: &mut Tracees, tid: u32) -> Option<SkippedCall> {
    let SyscallStop::Entry { arch, number, args } = ptrace::syscall_stop(tid) else { return None };
    let owner = tracees.memory_owner_of(tid)?;
    let number = number as i64;
    if number == libc::SYS_lseek && args[1] == 0 && asks_position(tid, &args) {
        return position_query(tracees, owner, tid, args);
    }
    if number == libc::SYS_lseek && args[2] == libc::SEEK_SET as u64 {
        return position_change(tracees, owner, tid, args);
    }
    if syscalls::is_foreign(arch, number as u64) {
        return None;
    }
    count_write(tracees, owner, tid, number, &args);
    if !(number == libc::SYS_write || number == libc::SYS_writev) {
        return None;
    }
    let memory = ProcessMemory { pid: tid };
    let segments = write_segments(&memory, number, &args);
    let requested_bytes = segments.iter().fold(0, |sum: u64, segment| sum.saturating_add(segment.1));
    if requested_bytes > i64::MAX as u64 {
        return None; // the kernel refuses the call with EINVAL
    }
    let (ahead, skipped_bytes) = find_written_ahead(tracees, owner, tid, args[0] as i32, &memory, &segments)?;
    tracees.written_ahead.set(owner, ahead.without_first(skipped_bytes as usize));
    if let Some(process) = tracees.processes.get_mut(&owner) {
        process.skipped_writes += 1;
    }
    let is_vector = number == libc::SYS_writev;
    let has_all = !is_vector || args[2] <= MAX_SEGMENTS as u64;
    let mut suppressed = skipped_bytes == requested_bytes && has_all;
    let mut saved_vector = None;
    if is_vector && !suppressed {
        saved_vector = shorten_vector(tid, &memory, &args, &segments, skipped_bytes);
    }
    if saved_vector.is_none() {
        // Of a vector in memory that weir cannot change, the call writes the rest of one segment: a short write.
        let rest = rest_of_segment(&segments, skipped_bytes);
        suppressed = rest.is_none();
        match rest {
            Some((from, bytes)) => {
                let rest = [args[0], from, bytes, args[3], args[4], args[5]];
                registers::replace_syscall(tid, libc::SYS_write, &rest, 0);
            }
            None => registers::replace_syscall(tid, -1, &args, skipped_bytes as i64),
        }
    }
    Some(SkippedCall { args, skipped_bytes, suppressed, position_offset: 0, is_vector, saved_vector })
}

/// Counts a call that writes to a file.
fn count_write(tracees: &mut Tracees, owner: u32, tid: u32, number: i64, args: &[u64; 6]) {
    let output = syscalls::op(number).filter(|op| op.writes()).and_then(|op| syscalls::output(op, args));
    if let Some(file) = output.and_then(|fd| WriteEpoch::file(tid, fd)) {
        tracees.written_ahead.count_write(owner, file);
    }
}

/// Returns whether an lseek(2) by 0 bytes asks where the next write goes: C libraries ask so for the end of a file with O_APPEND.
fn asks_position(tid: u32, args: &[u64; 6]) -> bool {
    let appends = || fdinfo(tid, args[0] as i32).is_some_and(|about| about.appends());
    args[2] == libc::SEEK_CUR as u64 || args[2] == libc::SEEK_END as u64 && appends()
}

/// Handles an lseek(2) that asks for the position: the program must see its offset without the written-ahead bytes.
fn position_query(tracees: &Tracees, owner: u32, tid: u32, args: [u64; 6]) -> Option<SkippedCall> {
    SkippedCall::of_position(args, bytes_ahead(tracees, owner, tid, args[0] as i32, |_| true))
}

/// Handles lseek(fd, POSITION, SEEK_SET) of a runtime that sets its own position again without a flush: the written-ahead bytes
/// are before the position at which it goes on.
fn position_change(tracees: &Tracees, owner: u32, tid: u32, args: [u64; 6]) -> Option<SkippedCall> {
    let call = SkippedCall::of_position(
        args,
        bytes_ahead(tracees, owner, tid, args[0] as i32, |one| one.sets_position),
    )?;
    let mut changed = args;
    changed[1] = args[1].wrapping_add(call.position_offset);
    registers::replace_syscall(tid, libc::SYS_lseek, &changed, -i64::from(libc::ENOSYS));
    Some(call)
}

/// Returns the number of bytes that were written ahead of a process to the file of a descriptor, from streams that `counts`.
fn bytes_ahead(
    tracees: &Tracees,
    owner: u32,
    tid: u32,
    fd: i32,
    counts: impl Fn(&WrittenAhead) -> bool,
) -> u64 {
    let same = |one: &WrittenAhead| one.fd == fd || same_file((tid, one.fd), (tid, fd));
    let ahead = tracees.written_ahead.streams(owner).filter(|one| counts(one) && same(one));
    ahead.map(|one| one.bytes.len() as u64).sum()
}

/// Handles the exit of a changed call: sets the result that the program expects. Returns false if the thread was
/// killed at this stop.
pub(crate) fn at_exit(tid: u32, call: &SkippedCall) -> bool {
    let SyscallStop::Exit { result } = ptrace::syscall_stop(tid) else { return false };
    if let Some((address, bytes)) = &call.saved_vector {
        ptrace::write_memory(tid, *address, bytes);
    }
    if call.position_offset > 0 {
        let position =
            if result >= 0 { result.saturating_sub_unsigned(call.position_offset) } else { result };
        return registers::set_result(tid, &call.args, position);
    }
    // If the rest failed or restarts, the call has written the skipped bytes only, and the program repeats the rest.
    let rest = if call.suppressed { 0 } else { result.max(0) };
    registers::set_result(tid, &call.args, call.skipped_bytes as i64 + rest)
}

/// Finds the written-ahead stream that a write begins with, and how many of its bytes the write repeats.
fn find_written_ahead(
    tracees: &Tracees,
    owner: u32,
    tid: u32,
    fd: i32,
    memory: &ProcessMemory,
    segments: &[(u64, u64)],
) -> Option<(WrittenAhead, u64)> {
    for one in tracees.written_ahead.streams(owner) {
        if one.fd != fd && !same_file((tid, one.fd), (tid, fd)) {
            continue;
        }
        let first_segment = segments.iter().find(|segment| segment.1 > 0);
        if !first_segment.is_some_and(|segment| one.can_be_written_from(segment.0)) {
            continue;
        }
        let first = first_bytes(memory, segments, one.bytes.len());
        if !first.is_empty() && one.bytes.starts_with(&first) {
            return Some((one.clone(), first.len() as u64));
        }
    }
    None
}

/// Returns the rest of the first segment that has more than the skipped bytes; None if there is none.
fn rest_of_segment(segments: &[(u64, u64)], mut skipped_bytes: u64) -> Option<(u64, u64)> {
    segments.iter().find_map(|(address, length)| {
        let skipped = skipped_bytes.min(*length);
        skipped_bytes -= skipped;
        (skipped < *length).then_some((address + skipped, length - skipped))
    })
}

/// Removes the skipped bytes from a vector in the program's memory. Returns its address and former bytes; None if the memory
/// cannot be changed.
fn shorten_vector(
    tid: u32,
    memory: &ProcessMemory,
    args: &[u64; 6],
    segments: &[(u64, u64)],
    mut skipped_bytes: u64,
) -> Option<(u64, Vec<u8>)> {
    let before = memory.bytes(args[1], segments.len() * IOVEC_BYTES);
    let after = iovec::to_bytes(segments.iter().map(|(address, length)| {
        let skipped = skipped_bytes.min(*length);
        skipped_bytes -= skipped;
        (address + skipped, length - skipped)
    }));
    let is_changed = ptrace::write_memory(tid, args[1], &after);
    if !is_changed {
        // A part of it may be changed.
        ptrace::write_memory(tid, args[1], &before);
    }
    is_changed.then_some((args[1], before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_segment_follows_the_skipped_bytes() {
        let segments = [(1000, 10), (2000, 0), (3000, 10)];
        let rest = [0, 4, 10, 13, 20].map(|skipped| rest_of_segment(&segments, skipped));
        let expected = [Some((1000, 10)), Some((1004, 6)), Some((3000, 10)), Some((3003, 7)), None];
        assert_eq!(rest, expected);
    }
}
