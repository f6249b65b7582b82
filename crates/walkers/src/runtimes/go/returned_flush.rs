//! Finds goroutines that may be in a flush whose write(2) was made, at the end of a process whose registers are unknown.
//!
//! The scheduler saves a goroutine's registers before each system call. If the goroutine is still in the flush that made its
//! last call, the return address of `bufio.(*Writer).Flush` is above the saved stack pointer. The return address of an earlier
//! flush can remain there too. But a program that puts bytes into the Writer after a flush calls another function from the same
//! place, whose return address replaces the old one; or the functions above no longer fit.
//!
//! When the scheduler resumes a goroutine, for example one that waited for a processor at the return of write(2), it
//! clears the saved stack pointer. Until its next call such a goroutine can be anywhere, so its whole stack is searched.

use std::collections::BTreeSet;

use weir_sys::memory::Memory;

use super::functions::GoFunctions;
use super::live_objects::LiveObjects;
use super::stacks::Goroutine;
use super::suspended::{
    ARGUMENT_BYTES, FLUSH, FlushSearch, MAX_FRAMES, STACK_BYTES, is_outermost, saved_registers,
};
use crate::copied_memory::{int, word};
use crate::suspended_flush::{STACK_POINTER, ThreadRegisters};

/// An upper bound of the size of Flush's frame, in which its Writer's address is.
const FLUSH_FRAME_BYTES: u64 = 256;
/// A direct call: its opcode, and its size.
const CALL: u8 = 0xe8;
const CALL_BYTES: u64 = 5;

/// Returns those of the Writers that a goroutine may be flushing; all of them if the goroutines or functions are unknown.
pub(super) fn find(
    memory: &dyn Memory,
    functions: Option<&GoFunctions>,
    live: &LiveObjects,
    writers: &[u64],
) -> BTreeSet<u64> {
    let writers: BTreeSet<u64> = writers.iter().copied().collect();
    let Some(functions) = functions.filter(|_| live.is_complete) else { return writers };
    let flush_entries = functions.entries_of(|name| name == FLUSH);
    let search = FlushSearch { memory, functions, writers };
    let of = |goroutine: &Goroutine| in_flush(&search, &flush_entries, goroutine);
    live.goroutines.iter().flat_map(of).collect()
}

fn in_flush(search: &FlushSearch<'_>, flush_entries: &[u64], goroutine: &Goroutine) -> BTreeSet<u64> {
    let registers = saved_registers(goroutine);
    let saved = registers.general[STACK_POINTER];
    let goes_on = saved == 0;
    if !goes_on && !goroutine.has_on_stack(saved) {
        return BTreeSet::new();
    }
    let mut found = BTreeSet::new();
    let frames = if goes_on { Vec::new() } else { search.unwind(&registers, false, MAX_FRAMES) };
    if let Some(index) = frames.iter().position(|frame| frame.name == FLUSH) {
        let (end, called_from) = (frames[index].end, search.memory.u64(frames[index].end));
        // A call by a pointer, for example of a deferred function, cannot be checked.
        if called_from.and_then(|at| called(search.memory, at)).is_none_or(|at| flush_entries.contains(&at)) {
            found.extend(writers_of(search, end));
        }
    }
    let used =
        if goes_on { goroutine.low.max(goroutine.high.saturating_sub(STACK_BYTES as u64)) } else { saved };
    let stack = search.memory.bytes(used, STACK_BYTES.min((goroutine.high - used) as usize));
    for (index, return_address) in stack.as_chunks().0.iter().map(|one| u64::from_le_bytes(*one)).enumerate()
    {
        let is_code = search.functions.at(return_address).is_some();
        if is_code && called(search.memory, return_address).is_some_and(|at| flush_entries.contains(&at)) {
            let at = used + 8 * index as u64;
            let mut outside = ThreadRegisters { next: return_address, ..ThreadRegisters::default() };
            outside.general[STACK_POINTER] = at + 8;
            let frames = search.unwind(&outside, false, MAX_FRAMES);
            if frames.len() == MAX_FRAMES || frames.last().is_some_and(is_outermost) {
                found.extend(writers_of(search, at));
            }
        }
    }
    found
}

/// Returns the Writers in the frame of the Flush whose return address is at `end`.
fn writers_of(search: &FlushSearch<'_>, end: u64) -> Vec<u64> {
    let from = end.saturating_sub(FLUSH_FRAME_BYTES);
    let words = search.memory.bytes(from, (FLUSH_FRAME_BYTES + 8 + ARGUMENT_BYTES) as usize);
    let words = words.as_chunks().0.iter().map(|one| u64::from_le_bytes(*one));
    words.filter(|one| search.writers.contains(one)).collect()
}

/// Returns the address that the direct call before a return address has called; None if there is none.
fn called(memory: &dyn Memory, return_address: u64) -> Option<u64> {
    let call = memory.bytes(return_address.checked_sub(CALL_BYTES)?, CALL_BYTES as usize);
    (cfg!(target_arch = "x86_64") && call.len() as u64 == CALL_BYTES && call[0] == CALL)
        .then(|| return_address.wrapping_add_signed(i64::from(int(&call, 1))))
}

/// Returns the address of a Writer's buffer.
pub(super) fn buffer_of(memory: &dyn Memory, writer: u64) -> u64 {
    word(&memory.bytes(writer.wrapping_add(16), 8), 0)
}
