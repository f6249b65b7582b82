//! The stacks of goroutines. A stack that grows moves, and leaves a stale copy of all objects on it.

use std::collections::BTreeSet;

use weir_sys::memory::Memory;

use crate::copied_memory::{structure, word};

/// Bounds the time to read the stacks.
const MAX_GOROUTINES: usize = 100_000;

/// The smallest stack. The upper end of each stack is aligned to this size.
const SMALLEST: u64 = 2048;

/// The size of a `runtime.g` up to the saved registers.
const GOROUTINE_BYTES: usize = 88;
/// The offset of `g.sched.g`, which is the goroutine itself.
pub(super) const OWN_ADDRESS: u64 = 72;
/// The offset of `g.stackguard0`.
pub(super) const STACK_GUARD: u64 = 16;

/// A goroutine: its stack, and the registers with which it continues unless a thread executes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Goroutine {
    pub address: u64,
    pub low: u64,
    pub high: u64,
    pub stack_pointer: u64,
    pub next: u64,
    pub context: u64,
}

impl Goroutine {
    /// Reads the goroutine at an address; None if there is none with a stack.
    pub fn read(memory: &dyn Memory, address: u64) -> Option<Goroutine> {
        let bytes = structure::<GOROUTINE_BYTES>(memory, address)?;
        let [low, high] = [0, 8].map(|at| word(&bytes, at));
        let [stack_pointer, next, own, context] = [56, 64, 72, 80].map(|at| word(&bytes, at));
        let is_one = low < high && (own == address || own == 0);
        is_one.then_some(Goroutine { address, low, high, stack_pointer, next, context })
    }

    pub fn has_on_stack(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }
}

/// Bounds the variables among which the list is searched: more than those of the runtime and of large packages.
const MAX_VARIABLES: u64 = 64 << 20;

/// Finds the list of goroutines in a program without symbols: a slice in this range of variables whose elements are all goroutines
/// that name themselves. None if there are several.
pub(super) fn find_list(memory: &dyn Memory, start: u64, end: u64) -> Option<u64> {
    const BLOCK: u64 = 1 << 20;
    /// The runtime starts several goroutines of its own. An address of one goroutine, and some numbers, are no list.
    const MIN_COUNT: u64 = 2;
    /// A slice across the end of a block is whole in that block.
    const OVERLAP: u64 = 16;
    if !(1..=MAX_VARIABLES).contains(&end.saturating_sub(start)) {
        return None;
    }
    let mut found = BTreeSet::new();
    for block in (start..end).step_by(BLOCK as usize) {
        let bytes = memory.bytes(block, (BLOCK + OVERLAP).min(end - block) as usize);
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        for (index, slice) in words.windows(3).enumerate() {
            let &[array, count, capacity] = slice else { continue };
            let is_slice = (MIN_COUNT..=capacity).contains(&count) && count <= MAX_GOROUTINES as u64;
            if is_slice && array.is_multiple_of(8) && are_goroutines(memory, array, count) {
                found.insert(block + 8 * index as u64);
            }
        }
    }
    found.first().copied().filter(|_| found.len() == 1)
}

/// Returns whether an array has only addresses of goroutines.
fn are_goroutines(memory: &dyn Memory, array: u64, count: u64) -> bool {
    let is_one =
        |at: u64| at.is_multiple_of(8) && at > 0 && memory.u64(at.saturating_add(OWN_ADDRESS)) == Some(at);
    // Most slices are not of goroutines, so the first element is examined first.
    memory.u64(array).is_some_and(is_one) && {
        let pointers = memory.bytes(array, 8 * count as usize);
        let pointers = pointers.as_chunks().0;
        pointers.len() as u64 == count && pointers.iter().all(|one| is_one(u64::from_le_bytes(*one)))
    }
}

/// Returns whether an object is on the stale copy of a stack: an object at the same distance from the upper end is on a
/// stack in use.
pub(super) fn is_stale(address: u64, all: &[u64], used: &[Goroutine]) -> bool {
    let in_use = |one: u64| used.iter().any(|stack| stack.has_on_stack(one));
    let twin = |other: &u64| *other % SMALLEST == address % SMALLEST && in_use(*other);
    !in_use(address) && all.iter().any(twin)
}

/// Returns the goroutines from their list (`runtime.allgs`); none if its address is not known, or the list is too long.
pub(super) fn read(memory: &dyn Memory, list: Option<u64>) -> Vec<Goroutine> {
    let Some(list) = list.and_then(|at| structure::<16>(memory, at)) else { return Vec::new() };
    let count = word(&list, 8) as usize;
    if count > MAX_GOROUTINES {
        return Vec::new();
    }
    let pointers = memory.bytes(word(&list, 0), 8 * count);
    let goroutines = pointers.as_chunks().0.iter().map(|pointer| u64::from_le_bytes(*pointer));
    goroutines.filter_map(|address| Goroutine::read(memory, address)).collect()
}
