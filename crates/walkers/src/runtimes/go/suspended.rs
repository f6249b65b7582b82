//! Finds goroutines that were in the middle of a flush when their process was killed.
//!
//! A Writer keeps its bytes until the write(2) that wrote them has returned and the goroutine has noted it. Meanwhile the
//! goroutine can wait: in the call, for a file that takes no bytes, or for a processor after the call. Its stack then
//! contains a frame of `bufio.(*Writer).Flush` with the Writer's address. Every goroutine is examined: one that a thread
//! executes by the thread's registers, each other one by those that the scheduler has saved. If no goroutine is in a flush
//! of a Writer, none of its pending bytes are written. Otherwise the goroutine is replayed from its innermost function
//! outside of the runtime on. Go's functions expect no values in registers when a call returns, except its results, so
//! the replay can begin where a call of the runtime returns.

use std::collections::BTreeSet;

use weir_sys::memory::Memory;

use super::bufio::PENDING_COUNT;
use super::functions::{GoFunction, GoFunctions};
use super::live_objects::{LiveObjects, Use};
use super::stacks::{Goroutine, STACK_GUARD};
use crate::copied_memory::word;
use crate::suspended_flush::{STACK_POINTER, SuspendedFlush, SuspendedFlushes, ThreadRegisters};

pub(super) const FLUSH: &[u8] = b"bufio.(*Writer).Flush";
/// The function that a signal makes a goroutine call between any two instructions.
const PREEMPTED: &[u8] = b"runtime.asyncPreempt";
/// The deepest flush is about ten calls below the innermost function.
pub(super) const MAX_FRAMES: usize = 64;
/// The part of a stack that is searched for return addresses if it cannot be unwound, and for a signal's registers.
pub(super) const STACK_BYTES: usize = 16 << 10;
/// The results and spilled arguments of a function are within this distance above its return address.
pub(super) const ARGUMENT_BYTES: u64 = 48;
/// The number of the register that holds the goroutine, and of DX, which holds a closure.
const GOROUTINE_REGISTER: usize = 14;
const CONTEXT_REGISTER: usize = 2;
/// The room below a stack's guard.
const GUARD_BYTES: u64 = 928;
/// The general registers in the order in which `asyncPreempt` saves them: AX, CX, DX, BX, SI, DI, R8 to R15.
const SAVED: [usize; 14] = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const FRAME_POINTER: usize = 5;

/// Finds the flushes of the Writers at some addresses.
pub(super) fn find(
    memory: &dyn Memory,
    functions: Option<&GoFunctions>,
    live: &LiveObjects,
    threads: &[ThreadRegisters],
    writers: &[u64],
) -> SuspendedFlushes {
    let note = |writer: &u64| writer.wrapping_add(PENDING_COUNT as u64);
    let Some(functions) = functions.filter(|_| live.is_complete) else {
        return SuspendedFlushes {
            unknown: writers.iter().map(note).collect(),
            ..SuspendedFlushes::default()
        };
    };
    let mut found = SuspendedFlushes {
        write_entries: functions.entries_of(|name| matches!(name, b"syscall.Write" | b"syscall.write")),
        scheduler_entries: functions.entries_of(is_scheduler),
        ..SuspendedFlushes::default()
    };
    let search = FlushSearch { memory, functions, writers: writers.iter().copied().collect() };
    let threads: Vec<(ThreadRegisters, bool)> =
        threads.iter().map(|one| search.in_user_code(one, live)).collect();
    let has_opaque_thread = threads.iter().any(|(_, is_known)| !is_known);
    let mut freed: BTreeSet<u64> = BTreeSet::new();
    for goroutine in &live.goroutines {
        let thread = threads.iter().find(|(one, _)| goroutine.has_on_stack(one.general[STACK_POINTER]));
        let (registers, is_known) =
            thread.map_or_else(|| search.in_scheduler(goroutine), |(registers, _)| (*registers, true));
        let used = registers.general[STACK_POINTER];
        // Memory that looks like a goroutine can name a stack that is now a part of the heap.
        let is_freed =
            |one: &&u64| goroutine.has_on_stack(**one) && **one < used && !live.is_in_heap(memory, **one);
        freed.extend(writers.iter().filter(is_freed));
        if !goroutine.has_on_stack(used) {
            continue;
        }
        match search.flush(&registers, thread.is_some(), goroutine.high) {
            None => {}
            // The scheduler's registers may be old: the goroutine may be executed by the thread.
            Some((_, of)) if !is_known || thread.is_none() && has_opaque_thread => {
                found.unknown.extend(of.iter().map(note))
            }
            Some((None, of)) => found.unknown.extend(of.iter().map(note)),
            Some((Some(mut registers), of)) => {
                registers.general[GOROUTINE_REGISTER] = goroutine.address;
                found.flushes.push(SuspendedFlush {
                    registers,
                    notes: of.iter().map(note).collect(),
                    yield_word: (goroutine.address + STACK_GUARD, goroutine.low.wrapping_add(GUARD_BYTES)),
                });
            }
        }
    }
    freed.extend(writers.iter().filter(|one| live.use_of(memory, **one) != Use::Used));
    found.freed = freed.iter().map(note).collect();
    found
}

/// Returns whether a function belongs to the scheduler and changes no stream.
fn is_scheduler(name: &[u8]) -> bool {
    let calls = [&b"runtime.entersyscall"[..], b"runtime.exitsyscall", b"syscall.runtime_entersyscall"];
    calls.contains(&name)
        || name == b"syscall.runtime_exitsyscall"
        || name.starts_with(b"internal/poll.runtime_")
}

/// Returns whether a function belongs to the runtime, so that a replay does not begin in it.
fn is_runtime(name: &[u8]) -> bool {
    name.starts_with(b"runtime.") || memchr::memmem::find(name, b".runtime_").is_some()
}

pub(super) fn saved_registers(goroutine: &Goroutine) -> ThreadRegisters {
    let mut registers = ThreadRegisters { next: goroutine.next, ..ThreadRegisters::default() };
    registers.general[STACK_POINTER] = goroutine.stack_pointer;
    registers.general[CONTEXT_REGISTER] = goroutine.context;
    registers
}

/// One function that a goroutine is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoFrame<'a> {
    pub name: &'a [u8],
    next: u64,
    stack_pointer: u64,
    /// The address of the return address.
    pub end: u64,
}

/// Unwinds the stacks of goroutines.
pub(super) struct FlushSearch<'a> {
    pub memory: &'a dyn Memory,
    pub functions: &'a GoFunctions,
    pub writers: BTreeSet<u64>,
}

impl FlushSearch<'_> {
    /// Returns the registers of a thread in the code of its goroutine, also if a signal or the vDSO has switched to
    /// another stack, and whether they are known.
    pub fn in_user_code(&self, thread: &ThreadRegisters, live: &LiveObjects) -> (ThreadRegisters, bool) {
        let is_on_stack = |pointer: u64| live.goroutines.iter().any(|one| one.has_on_stack(pointer));
        if is_on_stack(thread.general[STACK_POINTER]) {
            return (*thread, true);
        }
        let interrupted = self.interrupted(thread).filter(|one| is_on_stack(one.general[STACK_POINTER]));
        match interrupted {
            Some(registers) => (registers, true),
            None => (*thread, !live.is_vdso(thread.next)),
        }
    }

    /// Returns the registers of a goroutine on whose stack no thread is, and whether they are known. Around a system call the saved
    /// registers are those from before the call, but below the saved stack pointer is the return address of the last called
    /// function. If that function is `exitsyscall`, the call must not be made again. If that function makes the call, the
    /// registers are unknown, because the thread ended before they were read.
    fn in_scheduler(&self, goroutine: &Goroutine) -> (ThreadRegisters, bool) {
        let saved = saved_registers(goroutine);
        // A new goroutine begins at the first instruction of its function, and has called nothing.
        let is_outside = |one: &GoFunction| one.entry < saved.next && !is_runtime(one.name);
        let function = self.functions.at(saved.next).filter(is_outside);
        let is_in_function = |next: &u64| {
            let other = self.functions.at(next.wrapping_sub(1));
            function.zip(other).is_some_and(|(one, other)| one.entry == other.entry)
        };
        let returned_to = self.memory.u64(saved.general[STACK_POINTER].wrapping_sub(8));
        match returned_to.filter(is_in_function).filter(|next| *next != saved.next) {
            Some(next) => (ThreadRegisters { next, ..saved }, self.is_after_scheduler(next)),
            None => (saved, true),
        }
    }

    /// Returns whether the instruction before an address calls a function of the scheduler: `call` with a distance of 32 bits.
    fn is_after_scheduler(&self, next: u64) -> bool {
        const CALL: u8 = 0xe8;
        let instruction = self.memory.bytes(next.wrapping_sub(5), 5);
        let Some((&CALL, distance)) = instruction.split_first() else { return false };
        let distance = distance.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let called = self.functions.at(next.wrapping_add_signed(i64::from(distance)));
        called.is_some_and(|one| is_scheduler(one.name))
    }

    /// Returns the registers that the kernel has saved on the signal's stack that a thread is on.
    fn interrupted(&self, thread: &ThreadRegisters) -> Option<ThreadRegisters> {
        let start = thread.general[STACK_POINTER] & !7;
        let registers = signal_registers(&self.memory.bytes(start, 2 * STACK_BYTES), start)?;
        self.functions.at(registers.next).map(|_| registers)
    }

    /// Returns the Writers that a goroutine may be flushing, and the registers with which it continues outside of the
    /// runtime; None if it is in no flush of them. `is_exact` means that the next instruction is not a return address.
    fn flush(
        &self,
        registers: &ThreadRegisters,
        is_exact: bool,
        stack_end: u64,
    ) -> Option<(Option<ThreadRegisters>, Vec<u64>)> {
        let frames = self.unwind(registers, is_exact, MAX_FRAMES);
        let Some(index) = frames.iter().position(|frame| frame.name == FLUSH) else {
            let is_whole = frames.len() == MAX_FRAMES || frames.last().is_some_and(is_outermost);
            let of = if is_whole { Vec::new() } else { self.writers_by_words(registers, stack_end) };
            return (!of.is_empty()).then_some((None, of));
        };
        let frame = &frames[index];
        let words = self
            .memory
            .bytes(frame.stack_pointer, (frame.end - frame.stack_pointer + ARGUMENT_BYTES) as usize);
        let words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let in_registers = registers.general.into_iter().filter(|_| is_exact && index == 0);
        let of: BTreeSet<u64> =
            words.chain(in_registers).filter(|word| self.writers.contains(word)).collect();
        let of: Vec<u64> = of.into_iter().collect();
        (!of.is_empty()).then(|| (self.resumed(registers, &frames[..=index]), of))
    }

    /// Returns the functions that a goroutine is in, from the innermost on.
    pub fn unwind(&self, registers: &ThreadRegisters, is_exact: bool, most: usize) -> Vec<GoFrame<'_>> {
        let (mut next, mut stack_pointer, mut is_exact) =
            (registers.next, registers.general[STACK_POINTER], is_exact);
        let mut frames = Vec::new();
        while frames.len() < most {
            // The instruction after a call may belong to another part of the function.
            let address = if is_exact { next } else { next.wrapping_sub(1) };
            let Some(function) = self.functions.at(address) else { break };
            let Some(bytes) = function.stack_bytes(address) else { break };
            let Some(end) = stack_pointer.checked_add(bytes).filter(|_| bytes < 1 << 24) else { break };
            frames.push(GoFrame { name: function.name, next, stack_pointer, end });
            let Some(returned_to) = self.memory.u64(end) else { break };
            is_exact = function.name == PREEMPTED;
            (next, stack_pointer) = (returned_to, end.wrapping_add(8));
        }
        frames
    }

    /// Returns the registers with which a goroutine continues in its innermost function outside of the runtime.
    fn resumed(&self, registers: &ThreadRegisters, frames: &[GoFrame<'_>]) -> Option<ThreadRegisters> {
        let own = frames.iter().position(|frame| !is_runtime(frame.name))?;
        if own == 0 {
            return Some(*registers);
        }
        // A thread that was killed in this function may not have saved all registers.
        (frames[0].name != PREEMPTED).then_some(())?;
        let mut resumed = ThreadRegisters { next: frames[own].next, ..ThreadRegisters::default() };
        resumed.general[STACK_POINTER] = frames[own].stack_pointer;
        if let Some(preempted) = frames[..own].iter().find(|frame| frame.name == PREEMPTED) {
            let saved = self.memory.bytes(preempted.stack_pointer, 8 * SAVED.len());
            for (index, number) in SAVED.into_iter().enumerate() {
                resumed.general[number] = word(&saved, 8 * index);
            }
            resumed.general[FRAME_POINTER] = self.memory.u64(preempted.end.wrapping_sub(8))?;
        }
        Some(resumed)
    }

    /// Returns all Writers if a word of the stack can be a return address of a flush.
    fn writers_by_words(&self, registers: &ThreadRegisters, stack_end: u64) -> Vec<u64> {
        let start = registers.general[STACK_POINTER];
        let stack = self.memory.bytes(start, STACK_BYTES.min(stack_end.saturating_sub(start) as usize));
        let words = stack.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut functions = words.chain([registers.next]).filter_map(|word| self.functions.at(word));
        let in_flush = functions.any(|function| function.name == FLUSH);
        if in_flush { self.writers.iter().copied().collect() } else { Vec::new() }
    }
}

/// Returns the registers in the first `struct ucontext` of a stack in use, which begins at `start`: flags, link, the signal's stack
/// (address, flags, size), then R8 to R15, DI, SI, BP, BX, DX, AX, CX, SP, IP. An earlier signal of another thread has left one on
/// that thread's signal stack, which may follow this stack.
pub(super) fn signal_registers(stack: &[u8], start: u64) -> Option<ThreadRegisters> {
    const ORDER: [usize; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];
    let is_context = |at: &usize| {
        let field = |index: usize| word(stack, at + 8 * index);
        let (here, low, size) = (start.wrapping_add(*at as u64), field(2), field(4));
        let signal_stack = low..low.saturating_add(size);
        let is_used = signal_stack.contains(&start) && signal_stack.contains(&here);
        field(0) < 64 && field(1) == 0 && is_used && size < 1 << 24
    };
    let at = (0..stack.len().saturating_sub(200)).step_by(8).find(is_context)?;
    let mut registers = ThreadRegisters { next: word(stack, at + 40 + 8 * 16), ..ThreadRegisters::default() };
    for (index, number) in ORDER.into_iter().enumerate() {
        registers.general[number] = word(stack, at + 40 + 8 * index);
    }
    Some(registers)
}

/// Returns whether a goroutine has no further function.
pub(super) fn is_outermost(frame: &GoFrame<'_>) -> bool {
    // The caller of `systemstack` is on another stack.
    matches!(
        frame.name,
        b"runtime.goexit" | b"runtime.mstart" | b"runtime.rt0_go" | b"runtime.mcall" | b"runtime.systemstack"
    )
}
