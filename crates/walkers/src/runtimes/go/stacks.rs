//! The stacks of goroutines. A stack that grows moves, and leaves a stale copy of all objects on it.

use weir_sys::memory::Memory;

use crate::copied_memory::{structure, word};

/// Bounds the time to read the stacks.
const GOROUTINES_MOST: usize = 10_000;

/// The smallest stack. The upper end of each stack is aligned to this size.
const SMALLEST: u64 = 2048;

/// Tells whether an object is on the stale copy of a stack: an object at the same distance from the upper end is on a
/// stack in use.
pub(super) fn is_stale(address: u64, all: &[u64], used: &[(u64, u64)]) -> bool {
    let in_use = |one: u64| used.iter().any(|(low, high)| (*low..*high).contains(&one));
    let twin = |other: &u64| *other % SMALLEST == address % SMALLEST && in_use(*other);
    !in_use(address) && all.iter().any(twin)
}

/// Returns the stacks in use from the list of goroutines (`runtime.allgs`); none if its address is not known.
pub(super) fn read(memory: &dyn Memory, list: Option<u64>) -> Vec<(u64, u64)> {
    let Some(list) = list.and_then(|at| structure::<16>(memory, at)) else { return Vec::new() };
    let count = (word(&list, 8) as usize).min(GOROUTINES_MOST);
    let pointers = memory.bytes(word(&list, 0), 8 * count);
    let bounds = |goroutine: &[u8; 8]| structure::<16>(memory, u64::from_le_bytes(*goroutine));
    let stacks = pointers.as_chunks().0.iter().filter_map(bounds);
    stacks.map(|stack| (word(&stack, 0), word(&stack, 8))).filter(|(low, high)| low < high).collect()
}
