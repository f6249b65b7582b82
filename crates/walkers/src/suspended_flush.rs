//! Flushes that the kill of a process interrupted, in runtimes that schedule their threads by themselves.

/// The registers of a thread in user mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadRegisters {
    /// The general registers, indexed by their numbers in x86-64 instructions.
    pub general: [u64; 16],
    /// The address of the next instruction.
    pub next: u64,
}

/// The number of the stack pointer in [`ThreadRegisters::general`].
pub const STACK_POINTER: usize = 4;

/// A thread of the runtime that may have been in a flush of one of its streams.
#[derive(Debug, Clone)]
pub struct SuspendedFlush {
    /// The registers with which the thread continues.
    pub registers: ThreadRegisters,
    /// The addresses of the [`crate::CountWord`] of those streams.
    pub notes: Vec<u64>,
    /// The address of the word by which the runtime asks the thread to yield, and a value that does not ask for it.
    pub yield_word: (u64, u64),
}

/// The flushes in which the threads of a runtime were when the process was killed.
#[derive(Debug, Clone, Default)]
pub struct SuspendedFlushes {
    /// The threads that may be in a flush.
    pub flushes: Vec<SuspendedFlush>,
    /// Streams that a thread may or may not have been flushing, by the addresses of their [`crate::CountWord`].
    pub unknown: Vec<u64>,
    /// Streams whose memory is not in use any more.
    pub freed: Vec<u64>,
    /// The entry of the function that makes a write, with descriptor and address in the registers 0 and 3.
    pub write_entries: Vec<u64>,
    /// Entries of the scheduler's functions, which change no stream. A thread alone cannot execute them.
    pub scheduler_entries: Vec<u64>,
}
