//! Where the stacks of goroutines are: a stack that grew leaves its old self behind, with all that was on it.

use weir_sys::memory::Memory;

use crate::copied_memory::{structure, word};

/// More are not asked.
const GOROUTINES_MOST: usize = 10_000;

/// A stack begins, at its upper end, at a multiple of the smallest.
const SMALLEST: u64 = 2048;

/// Whether an object is on the old self of a stack: its twin, as far from the upper end, is on a stack in use.
pub(super) fn is_stale(address: u64, all: &[u64], used: &[(u64, u64)]) -> bool {
    let in_use = |one: u64| used.iter().any(|(low, high)| (*low..*high).contains(&one));
    let twin = |other: &u64| *other % SMALLEST == address % SMALLEST && in_use(*other);
    !in_use(address) && all.iter().any(twin)
}

/// The stacks that are in use, as the list of goroutines (`runtime.allgs`) says; none where it is not known.
pub(super) fn of_goroutines(memory: &dyn Memory, list: Option<u64>) -> Vec<(u64, u64)> {
    let Some(list) = list.and_then(|at| structure::<16>(memory, at)) else { return Vec::new() };
    let count = (word(&list, 8) as usize).min(GOROUTINES_MOST);
    let pointers = memory.bytes(word(&list, 0), 8 * count);
    let bounds = |goroutine: &[u8; 8]| structure::<16>(memory, u64::from_le_bytes(*goroutine));
    let stacks = pointers.as_chunks().0.iter().filter_map(bounds);
    stacks.map(|stack| (word(&stack, 0), word(&stack, 8))).filter(|(low, high)| low < high).collect()
}
