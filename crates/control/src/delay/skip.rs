//! Skipping what was written ahead, when the program comes to write it itself.

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace::registers;
use weir_sys::ptrace::{self, SyscallStop, same_file};
use weir_sys::syscalls;

use crate::supervise::tracees::Tracees;

/// More parts of a vector are not looked at: what was written ahead is in the first ones.
const PARTS: usize = 64;

/// A call of which a part was skipped.
#[derive(Debug)]
pub(crate) struct SkippedCall {
    /// As the program gave them.
    args: [u64; 6],
    /// How many bytes it does not write.
    skipped: u64,
    /// Nothing else was to be written: the call is not made.
    whole: bool,
    /// It asks for the file's position, which is further than the program knows by this.
    further: u64,
    /// It is a writev(2).
    is_vector: bool,
    /// What was in its vector.
    vector: Option<(u64, Vec<u8>)>,
}

impl SkippedCall {
    /// The thread as the program would find itself when it had written so much; None: that is not known of this call.
    #[cfg(target_arch = "x86_64")]
    pub fn came_back(
        &self,
        torn: crate::rescue::replay::KilledThread,
        bytes: u64,
    ) -> Option<crate::rescue::replay::KilledThread> {
        (self.skipped > 0 && !self.is_vector).then(|| torn.with_write(self.args, bytes))
    }

    /// Where to, all that the program wanted to write, and how much of it was skipped.
    pub fn asked(&self, tid: u32) -> (i32, Vec<(u64, u64)>, u64) {
        let parts = match &self.vector {
            Some((_, before)) => vector(before),
            None if self.args[2] <= PARTS as u64 && self.is_vector => {
                parts(&ProcessMemory { pid: tid }, libc::SYS_writev, &self.args)
            }
            None => vec![(self.args[1], self.args[2])],
        };
        (self.args[0] as i32, parts, self.skipped)
    }
}

/// At a system call's entry in a process of which something was written ahead.
pub(crate) fn at_entry(world: &mut Tracees, tid: u32) -> Option<SkippedCall> {
    let SyscallStop::Entry { arch, number, args } = ptrace::side(tid) else { return None };
    let owner = world.owner_of(tid)?;
    let number = number as i64;
    if number == libc::SYS_lseek && args[1] == 0 && args[2] == libc::SEEK_CUR as u64 {
        return position(world, owner, tid, args);
    }
    if syscalls::foreign(arch, number as u64) || !(number == libc::SYS_write || number == libc::SYS_writev) {
        return None;
    }
    let memory = ProcessMemory { pid: tid };
    let parts = parts(&memory, number, &args);
    let asked: u64 = parts.iter().map(|part| part.1).sum();
    let (stream, fd, left, skipped) = found(world, owner, tid, args[0] as i32, &memory, &parts)?;
    world.written.set(owner, stream, fd, &left);
    if let Some(process) = world.processes.get_mut(&owner) {
        process.skips += 1;
    }
    let is_vector = number == libc::SYS_writev;
    let all_seen = !is_vector || args[2] <= PARTS as u64;
    let whole = skipped == asked && all_seen;
    let mut skip = SkippedCall { args, skipped, whole, further: 0, is_vector, vector: None };
    if skip.whole {
        registers::change(tid, -1, &args, asked as i64);
    } else if number == libc::SYS_write {
        let [fd, from, bytes, ..] = args;
        registers::change(tid, number, &[fd, from + skipped, bytes - skipped, args[3], args[4], args[5]], 0);
    } else {
        skip.vector = shorten(tid, &memory, &args, &parts, skipped);
    }
    Some(skip)
}

/// A program that asks where it is in its file is told where it would be without weir.
fn position(world: &Tracees, owner: u32, tid: u32, args: [u64; 6]) -> Option<SkippedCall> {
    let fd = args[0] as i32;
    let of_file =
        |one: &&crate::delay::ahead_table::WrittenAhead| one.fd == fd || same_file((tid, one.fd), (tid, fd));
    let further: usize = world.written.of_memory(owner).filter(of_file).map(|one| one.bytes.len()).sum();
    let skip = SkippedCall {
        args,
        skipped: 0,
        whole: false,
        further: further as u64,
        is_vector: false,
        vector: None,
    };
    (further > 0).then_some(skip)
}

/// At its exit: the program gets what it would have got. False: it was killed, and gets nothing any more.
pub(crate) fn at_exit(tid: u32, skip: &SkippedCall) -> bool {
    let SyscallStop::Exit { result } = ptrace::side(tid) else { return false };
    if let Some((address, bytes)) = &skip.vector {
        ptrace::write_memory(tid, *address, bytes);
    }
    if skip.further > 0 {
        let told = if result >= 0 { result.saturating_sub_unsigned(skip.further) } else { result };
        return registers::answer(tid, &skip.args, told);
    }
    // A rest that failed, or is to be made again, is not part of what was written: the program tries it again.
    let more = if skip.whole { 0 } else { result.max(0) };
    registers::answer(tid, &skip.args, skip.skipped as i64 + more)
}

/// Addresses and lengths of what is to be written.
pub(crate) fn parts(memory: &ProcessMemory, number: i64, args: &[u64; 6]) -> Vec<(u64, u64)> {
    if number == libc::SYS_write {
        return vec![(args[1], args[2])];
    }
    vector(&memory.bytes(args[1], (args[2] as usize).min(PARTS) * 16))
}

/// Of a vector's bytes.
pub(crate) fn vector(bytes: &[u8]) -> Vec<(u64, u64)> {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    bytes.chunks_exact(16).map(|part| (word(part), word(&part[8..]))).collect()
}

/// The stream whose beginning this is, what is still ahead of it afterwards, and how much is to be skipped.
fn found(
    world: &Tracees,
    owner: u32,
    tid: u32,
    fd: i32,
    memory: &ProcessMemory,
    parts: &[(u64, u64)],
) -> Option<(u64, i32, Vec<u8>, u64)> {
    for one in world.written.of_memory(owner) {
        if one.fd != fd && !same_file((tid, one.fd), (tid, fd)) {
            continue;
        }
        let begins = beginning(memory, parts, one.bytes.len());
        if !begins.is_empty() && one.bytes.starts_with(&begins) {
            let left = one.bytes[begins.len()..].to_vec();
            return Some((one.stream, one.fd, left, begins.len() as u64));
        }
    }
    None
}

/// The first bytes of these parts, at most so many.
pub(crate) fn beginning(memory: &ProcessMemory, parts: &[(u64, u64)], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (address, length) in parts {
        let wanted = (most - bytes.len()).min(*length as usize);
        bytes.extend(memory.bytes(*address, wanted));
    }
    bytes
}

/// Takes the skipped bytes out of a vector; what was there before, to be put back.
fn shorten(
    tid: u32,
    memory: &ProcessMemory,
    args: &[u64; 6],
    parts: &[(u64, u64)],
    mut skipped: u64,
) -> Option<(u64, Vec<u8>)> {
    let before = memory.bytes(args[1], parts.len() * 16);
    let mut after = Vec::with_capacity(before.len());
    for (address, length) in parts {
        let here = skipped.min(*length);
        skipped -= here;
        after.extend((address + here).to_le_bytes());
        after.extend((length - here).to_le_bytes());
    }
    ptrace::write_memory(tid, args[1], &after);
    Some((args[1], before))
}
