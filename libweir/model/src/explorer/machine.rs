//! The machine: threads with registers, a memory of cells of one byte each, store buffers, futexes, and one file.

/// Cells of the memory.
pub const CELLS: usize = 26;
/// Registers of a thread.
pub const REGISTERS: usize = 7;
/// The most threads of a model.
pub const THREADS: usize = 5;
/// Entries of a store buffer. A program that needs more is an error of the model: the machine panics.
pub const STORES: usize = 32;
/// The most bytes of the file.
pub const FILE: usize = 14;

use super::history::History;

/// The number of a cell.
pub type Cell = u8;
/// The number of a register.
pub type Register = u8;

/// A constant or a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Value(u8),
    Of(Register),
}

/// A fixed cell, or one of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    Fixed(Cell),
    /// The cell at the register's value, counted from the cell.
    Indexed(Cell, Register),
}

/// The condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Same,
    Differs,
    /// Smaller, of numbers without a sign.
    Less,
}

/// One step of a program. Jumps have the number of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields' names say all
pub enum Op {
    /// Loads from the thread's own store buffer, else from memory, or an old value.
    Load {
        to: Register,
        at: Address,
        acquire: bool,
    },
    /// Stores into the thread's store buffer; at once in memory if the model is sequentially consistent.
    Store {
        at: Address,
        value: Operand,
        release: bool,
    },
    /// A locked instruction. `ok` becomes 1 if `at` had the value `expected`; only then it has acquire order.
    CompareExchange {
        at: Cell,
        expected: u8,
        new: u8,
        ok: Register,
        acquire: bool,
        release: bool,
    },
    FetchAdd {
        at: Cell,
        delta: i8,
    },
    /// membarrier(2): ends when the store buffer of each thread has been empty at one moment since its begin.
    Membarrier,
    /// futex(2), FUTEX_WAIT: sleeps if the cell has the value of the register.
    FutexWait {
        at: Cell,
        expected: Register,
    },
    /// futex(2), FUTEX_WAKE: wakes one sleeping thread, or all if the register is at least `all_from`.
    FutexWake {
        at: Cell,
        count: Register,
        all_from: u8,
    },
    /// A part of write(2): appends the byte of a cell to the file. A thread that is cancelled ends here if `cancels`.
    WriteCell {
        at: Address,
        cancels: bool,
    },
    /// The same of the byte that is `base` plus the register's value.
    WriteValue {
        base: u8,
        number: Register,
        cancels: bool,
    },
    Set {
        to: Register,
        value: Operand,
    },
    /// Adds to a register.
    Add {
        to: Register,
        value: u8,
    },
    /// Jumps if the condition is true.
    Branch {
        left: Register,
        test: Test,
        right: Operand,
        target: u16,
    },
    Jump {
        target: u16,
    },
    /// Jumps or goes on.
    Choose {
        target: u16,
    },
    /// Counts the bytes of the thread that calls have accepted: a register's value.
    Accept {
        bytes: Register,
    },
    /// A cancellation point: a thread that is cancelled ends.
    TestCancel,
    Cancel {
        thread: u8,
    },
    /// fork(2): the promises are checked on the child's copy of the memory.
    Fork,
    /// munmap(2) of the stream: every later access is an error.
    Free,
    /// exit_group(2).
    ExitGroup,
    End,
}

/// Condition of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can execute its next step.
    Running,
    /// It sleeps in futex(2) on a cell.
    Sleeping(Cell),
    Ended,
}

/// A store in the buffer: its cell, its value, and whether it has release order.
pub type Stored = (Cell, u8, bool);

#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// The number of its next step.
    pub step: u16,
    /// Its registers. A register whose value no later step reads is 0.
    pub registers: [u8; REGISTERS],
    pub status: Status,
    /// In membarrier(2): a bit for each thread whose store buffer has not been empty yet.
    pub barrier: u8,
    /// pthread_cancel(3) was called for it.
    pub cancelled: bool,
    /// The bytes that its calls have accepted.
    pub accepted: u8,
    /// How many of the newest stores may as well not be executed yet: those of the local steps since the last step that
    /// others can notice. A membarrier(2) of another thread does not wait for them.
    pub fresh: u8,
    stores: [Stored; STORES],
    stored: u8,
    /// The old values that its loads may still return.
    pub history: History,
}

impl Thread {
    fn new() -> Thread {
        Thread {
            step: 0,
            registers: [0; REGISTERS],
            status: Status::Running,
            barrier: 0,
            cancelled: false,
            accepted: 0,
            fresh: 0,
            stores: [(0, 0, false); STORES],
            stored: 0,
            history: History::default(),
        }
    }

    /// Executes a barrier: later loads return what is in memory now, or later.
    pub fn forget(&mut self) {
        self.history = History::default();
    }

    /// Returns the store buffer, the oldest store first.
    pub fn stores(&self) -> &[Stored] {
        &self.stores[..usize::from(self.stored)]
    }

    /// Appends to the store buffer.
    pub fn push(&mut self, at: Cell, value: u8, release: bool) {
        self.stores[usize::from(self.stored)] = (at, value, release);
        self.stored += 1;
        self.fresh += 1;
    }

    /// Takes a store: 0 is the oldest.
    pub fn take(&mut self, number: usize) -> (Cell, u8) {
        let (at, value, _) = self.stores[number];
        self.stores.copy_within(number + 1.., number);
        let is_fresh = number >= usize::from(self.stored - self.fresh);
        self.stored -= 1;
        self.stores[usize::from(self.stored)] = (0, 0, false);
        self.fresh = if is_fresh { self.stored - number as u8 } else { self.fresh };
        (at, value)
    }

    /// Returns whether the store may be the next one in memory, although older ones are not: none of them is of the same
    /// cell, and it has no release order.
    pub fn may_overtake(&self, number: usize) -> bool {
        let (cell, _, release) = self.stores[number];
        !release && self.stores()[..number].iter().all(|(older, _, _)| *older != cell)
    }

    /// Returns whether all stores may be in memory: a membarrier(2) can end.
    pub fn is_passed(&self) -> bool {
        self.stored <= self.fresh
    }

    /// Returns an operand's value.
    pub fn value(&self, operand: Operand) -> u8 {
        match operand {
            Operand::Value(value) => value,
            Operand::Of(register) => self.registers[usize::from(register)],
        }
    }

    /// Returns the cell of an address.
    pub fn cell(&self, address: Address) -> Cell {
        match address {
            Address::Fixed(cell) => cell,
            Address::Indexed(cell, register) => cell + self.registers[usize::from(register)],
        }
    }
}

/// A state of the whole machine.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub cells: [u8; CELLS],
    pub threads: [Thread; THREADS],
    /// The process has ended.
    pub exited: bool,
    /// The stream's memory was freed.
    pub freed: bool,
    file: [u8; FILE],
    length: u8,
}

impl State {
    /// Returns the state before the first step of each thread.
    pub fn new(cells: &[(Cell, u8)]) -> State {
        let threads = [Thread::new(); THREADS];
        let mut state =
            State { cells: [0; CELLS], threads, exited: false, freed: false, file: [0; FILE], length: 0 };
        for &(cell, value) in cells {
            state.cells[usize::from(cell)] = value;
        }
        state
    }

    /// Returns the bytes of the file.
    pub fn file(&self) -> &[u8] {
        &self.file[..usize::from(self.length)]
    }

    /// Appends to the file. Returns false if the file has the size limit: a program that writes its bytes again and
    /// again.
    pub fn append(&mut self, byte: u8) -> bool {
        if usize::from(self.length) == FILE {
            return false;
        }
        self.file[usize::from(self.length)] = byte;
        self.length += 1;
        true
    }

    /// Returns what the thread loads from the cell.
    pub fn load(&self, thread: usize, cell: Cell) -> u8 {
        let own = self.threads[thread].stores().iter().rev().find(|(at, _, _)| *at == cell);
        own.map_or(self.cells[usize::from(cell)], |(_, value, _)| *value)
    }

    /// Encodes the state of `threads` threads: equal states have equal codes, and no others.
    pub fn encode(&self, threads: usize, code: &mut Vec<u8>) {
        code.clear();
        code.extend_from_slice(&self.cells);
        code.extend_from_slice(&[u8::from(self.exited) | u8::from(self.freed) << 1, self.length]);
        code.extend_from_slice(self.file());
        for thread in &self.threads[..threads] {
            let status = match thread.status {
                Status::Running => 0,
                Status::Ended => 1,
                Status::Sleeping(cell) => 2 + cell,
            };
            code.extend_from_slice(&thread.step.to_le_bytes());
            code.extend_from_slice(&thread.registers);
            let flags = thread.barrier | u8::from(thread.cancelled) << 7;
            code.extend_from_slice(&[status, flags, thread.accepted, thread.stored, thread.fresh]);
            code.extend(
                thread
                    .stores()
                    .iter()
                    .flat_map(|(at, value, release)| [*at | u8::from(*release) << 7, *value]),
            );
            thread.history.encode(code);
        }
    }
}
