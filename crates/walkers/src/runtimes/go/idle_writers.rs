//! Empties the Writers of a process whose threads are stopped, if no goroutine is in a method of them.
//!
//! A method of a Writer can keep the number of pending bytes in a register, so a Writer must not change while a goroutine
//! is in one; it does not matter whether a thread executes the goroutine. Outside of its methods the number is only in the
//! Writer: the methods that the compiler makes a part of other functions (`Available`, `Buffered`, `Size`,
//! `AvailableBuffer`, `Reset`) read it, or set it to zero, and a smaller number is right for them. A profile can make the
//! compiler do so with the other methods; then no Writer is emptied.

use std::collections::BTreeSet;

use weir_sys::memory::Memory;

use super::bufio::PENDING_COUNT;
use super::functions::GoFunctions;
use super::live_objects::LiveObjects;
use super::stacks::Goroutine;
use super::suspended::{ARGUMENT_BYTES, FlushSearch, is_outermost, saved_registers};
use crate::pending_bytes::{MemoryStore, PartialStore, PendingBytes, StoredValue};
use crate::suspended_flush::{STACK_POINTER, ThreadRegisters};

const METHODS: &[u8] = b"bufio.(*Writer).";
/// `ReadFrom` calls a function of the program, which can call itself. A deeper stack counts as one in a method.
const MAX_FRAMES: usize = 1024;
/// Bounds the time for which the process is stopped: a goroutine takes about ten reads of its memory.
const MAX_GOROUTINES: usize = 10_000;
/// Bounds the memory for the frames of a goroutine. A deeper stack counts as one in a method.
const MAX_FRAME_BYTES: u64 = 64 << 20;
/// The size of a Writer.
const WRITER_BYTES: u64 = 64;

/// The use of the Writers by goroutines.
pub(super) struct WriterUse {
    /// The Writers that a goroutine has in one of their methods; None if that is unknown.
    in_method: Option<BTreeSet<u64>>,
}

impl WriterUse {
    /// Examines all goroutines. `threads` has the registers of all threads.
    pub fn read(
        memory: &dyn Memory,
        functions: Option<&GoFunctions>,
        live: &LiveObjects,
        threads: &[ThreadRegisters],
        writers: &[u64],
    ) -> WriterUse {
        let is_known = live.is_complete && live.goroutines.len() <= MAX_GOROUTINES && !threads.is_empty();
        let Some(functions) = functions.filter(|_| is_known) else { return WriterUse { in_method: None } };
        let search = FlushSearch { memory, functions, writers: writers.iter().copied().collect() };
        let threads: Option<Vec<ThreadRegisters>> = threads
            .iter()
            .map(|one| {
                let (registers, is_known) = search.in_user_code(one, live);
                is_known.then_some(registers)
            })
            .collect();
        let Some(threads) = threads else { return WriterUse { in_method: None } };
        let of = |goroutine: &Goroutine| writers_of(&search, goroutine, &threads);
        WriterUse {
            in_method: live
                .goroutines
                .iter()
                .map(of)
                .collect::<Option<Vec<_>>>()
                .map(|all| all.concat().into_iter().collect()),
        }
    }

    /// Adds to the pending bytes of a Writer the stores of a flush, and whether a goroutine is in a method of the Writer.
    pub fn add_stores(&self, memory: &dyn Memory, live: &LiveObjects, one: &mut PendingBytes) {
        let (Some(note), Some(data)) = (one.note, one.data_address) else { return };
        let writer = note.address.wrapping_sub(PENDING_COUNT as u64);
        let Some(in_method) = &self.in_method else { return };
        if !live.is_fixed(memory, writer) || !live.owns_buffer(memory, writer, data) {
            return;
        }
        one.locked = Some(in_method.contains(&writer));
        one.drain_stores = vec![MemoryStore::u64(note.address, note.when_written)];
        one.partial_stores = vec![
            PartialStore::new(data, StoredValue::RemainingBytes),
            PartialStore::new(note.address, StoredValue::RemainingPlus(0)),
        ];
    }
}

/// Returns the Writers in whose methods a goroutine is; None if its functions are unknown.
fn writers_of(
    search: &FlushSearch<'_>,
    goroutine: &Goroutine,
    threads: &[ThreadRegisters],
) -> Option<Vec<u64>> {
    let thread = threads.iter().find(|one| goroutine.has_on_stack(one.general[STACK_POINTER]));
    let registers = thread.map_or_else(|| saved_registers(goroutine), |registers| *registers);
    let used = registers.general[STACK_POINTER];
    if !goroutine.has_on_stack(used) {
        return Some(Vec::new());
    }
    // A new goroutine begins at the entry of its function.
    let is_entry =
        search.functions.at(registers.next).is_some_and(|function| function.entry == registers.next);
    let frames = search.unwind(&registers, thread.is_some() || is_entry, MAX_FRAMES);
    let is_whole = frames.iter().any(is_outermost);
    is_whole.then_some(())?;
    let Some(outer) = frames.iter().rfind(|frame| frame.name.starts_with(METHODS)) else {
        return Some(Vec::new());
    };
    let bytes = outer.end.checked_sub(used).filter(|bytes| *bytes <= MAX_FRAME_BYTES)?;
    (outer.end <= goroutine.high).then_some(())?;
    let words = search.memory.bytes(used, (bytes + ARGUMENT_BYTES) as usize);
    let words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let pointers = words.chain(registers.general);
    let writer = |pointer: u64| {
        let writer = search.writers.range(..=pointer).next_back().copied()?;
        (pointer - writer < WRITER_BYTES).then_some(writer)
    };
    Some(pointers.filter_map(writer).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{BASE, TestMemory};

    const TEXT: u64 = 0x40_0000;
    const WRITER: u64 = 0xc0_0000_1000;

    /// Returns memory with a stack at word 40: a method of a Writer, whose frame has two words, and the outermost function. Also returns
    /// the tables of these two functions.
    fn stack_in_a_method() -> (TestMemory, GoFunctions) {
        let mut memory = TestMemory::of(&[0; 48]);
        let mut set = |at: usize, bytes: &[u8]| memory.0[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, &0xffff_fff0u32.to_le_bytes());
        set(8, b"bufio.(*Writer).ReadFrom\0runtime.goexit\0");
        // 16 bytes, and none.
        set(64, &[34, 127, 0, 2, 127, 0]);
        for (index, entry, name, stack_sizes) in [(0, 0x100, 0, 0), (1, 0x200, 25, 3), (2, 0x300, 0, 0)] {
            set(80 + 8 * index, &u32::to_le_bytes(entry));
            set(84 + 8 * index, &(32 * index as u32).to_le_bytes());
            set(128 + 32 * index + 4, &u32::to_le_bytes(name));
            set(128 + 32 * index + 16, &u32::to_le_bytes(stack_sizes));
        }
        set(8 * 40, &WRITER.to_le_bytes());
        set(8 * 42, &(TEXT + 0x201).to_le_bytes());
        let mut module = [0; 30];
        (module[0], module[22]) = (BASE, TEXT);
        for (index, at, count) in [(1, 8, 40), (10, 64, 6), (13, 128, 96), (16, 80, 3)] {
            (module[index], module[index + 1]) = (BASE + at, count);
        }
        let functions = GoFunctions::read(&memory, &module).expect("tables");
        (memory, functions)
    }

    #[test]
    fn frames_beyond_the_end_of_a_stack_are_not_read() {
        let (memory, functions) = stack_in_a_method();
        let search = FlushSearch { memory: &memory, functions: &functions, writers: [WRITER].into() };
        let at = |word: u64| BASE + 8 * word;
        let writers = |high| {
            let (low, next) = (at(38), TEXT + 0x101);
            let goroutine = Goroutine { address: 1, low, high, stack_pointer: at(40), next, context: 0 };
            writers_of(&search, &goroutine, &[])
        };
        assert_eq!(writers(at(48)), Some(vec![WRITER]));
        assert_eq!(writers(at(41)), None, "the return address is beyond the end");
    }
}
