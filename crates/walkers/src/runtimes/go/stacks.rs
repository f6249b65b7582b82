//! The stacks of goroutines. A stack that grows moves, and leaves a stale copy of all objects on it.

use weir_sys::memory::Memory;

use crate::copied_memory::{structure, word};

/// Bounds the time to read the stacks.
const GOROUTINES_MOST: usize = 100_000;

/// The smallest stack. The upper end of each stack is aligned to this size.
const SMALLEST: u64 = 2048;

/// The size of a `runtime.g` up to the saved registers.
const GOROUTINE_BYTES: usize = 88;
/// The offset of `g.sched.g`, which is the goroutine itself.
pub(super) const OWN_ADDRESS: u64 = 72;
/// The offset of `g.stackguard0`.
pub(super) const STACK_GUARD: u64 = 16;

/// A goroutine: its stack, and where it goes on unless a thread executes it.
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

/// Tells whether an object is on the stale copy of a stack: an object at the same distance from the upper end is on a
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
    if count > GOROUTINES_MOST {
        return Vec::new();
    }
    let pointers = memory.bytes(word(&list, 0), 8 * count);
    let goroutines = pointers.as_chunks().0.iter().map(|pointer| u64::from_le_bytes(*pointer));
    goroutines.filter_map(|address| Goroutine::read(memory, address)).collect()
}
