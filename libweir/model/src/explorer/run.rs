//! Executes the steps of a model, one action at a time.

use super::loads::OLD;
use super::machine::{Address, CELLS, Cell, Op, State, Status, Test, Thread};
use super::program::{Accesses, Program};
use super::promises::Promises;
use super::system_calls::sleeping_on;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// x86-TSO: stores wait in a buffer per thread, oldest first; loads see the thread's own buffer first.
    Tso,
    /// As x86-TSO, but a store may reach the memory before older ones of other cells, unless it has release order; and a
    /// locked instruction waits for older stores only if it has release order. C11's side of stores.
    Relaxed,
    /// As `Relaxed`, and a load may return a value that others have replaced since the thread's last barrier or acquire load,
    /// as on processors that execute loads early, such as ARM's. See [`super::machine::Thread::history`].
    Unordered,
    /// Sequential consistency: every store is in memory at once.
    Sc,
}

impl Memory {
    /// Returns whether stores may overtake each other.
    pub fn reorders_stores(self) -> bool {
        matches!(self, Memory::Relaxed | Memory::Unordered)
    }
}

/// From this choice on, a younger store reaches the memory before the oldest.
pub(super) const OVERTAKES: u8 = 64;

/// Next step of one thread. `choice` 0: its oldest store reaches the memory; others: its next step, by the first,
/// second, … of the possible ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The number of the thread.
    pub thread: u8,
    pub choice: u8,
}

/// The threads of a model, their memory, and what must be true.
#[derive(Debug)]
pub struct Machine {
    /// The programs; their order is that of the threads.
    pub programs: Vec<Program>,
    /// The memory before the first step.
    pub cells: Vec<(Cell, u8)>,
    pub memory: Memory,
    pub promises: Promises,
    /// Cells that threads access only while they hold the lock; an access without it is an error. Loads of them, and
    /// the way of their stores to the memory, are not seen by other threads before the lock is released.
    pub locked: [bool; CELLS],
    /// The owner of that lock; a thread's number in it is 1 greater.
    pub lock_owner: Cell,
    /// An old value has lost its place in the order.
    pub unordered: std::cell::Cell<bool>,
    quiet: Vec<[bool; CELLS]>,
    private: Vec<[bool; CELLS]>,
}

/// Records the steps of a trace.
pub type Log<'a> = Option<&'a mut Vec<(usize, u16, String)>>;

pub(super) fn note(log: &mut Log, thread: usize, step: u16, effect: impl FnOnce() -> String) {
    if let Some(log) = log {
        log.push((thread, step, effect()));
    }
}

impl Machine {
    pub fn new(
        programs: Vec<Program>,
        cells: Vec<(Cell, u8)>,
        memory: Memory,
        promises: Promises,
        lock_owner: Cell,
        locked: [bool; CELLS],
    ) -> Machine {
        let accesses: Vec<Accesses> = programs.iter().map(Accesses::of).collect();
        let of_others = |thread: usize, of: fn(&Accesses, usize) -> bool| {
            let others = || accesses.iter().enumerate().filter(move |(other, _)| *other != thread);
            std::array::from_fn(|cell| !others().any(|(_, accesses)| of(accesses, cell)))
        };
        let quiet = (0..programs.len()).map(|t| of_others(t, |other, cell| other.stores[cell])).collect();
        let private = (0..programs.len())
            .map(|t| of_others(t, |other, cell| other.stores[cell] || other.loads[cell]))
            .collect();
        let unordered = std::cell::Cell::new(false);
        Machine { programs, cells, memory, promises, locked, lock_owner, unordered, quiet, private }
    }

    /// Returns the first state.
    pub fn start(&self) -> State {
        let mut state = State::new(&self.cells);
        for thread in 0..self.programs.len() {
            self.settle(&mut state, thread, &mut None).expect("the first steps keep all promises");
        }
        state
    }

    /// Returns whether the step of this thread commutes with every action of other threads: it is executed together
    /// with the step before it. A store only enters the thread's own buffer; see [`super::machine::Thread::fresh`].
    fn is_local(&self, state: &State, thread: usize, op: &Op) -> bool {
        let all = |of: &[bool; CELLS], address: Address| match address {
            Address::Fixed(cell) => of[usize::from(cell)],
            Address::Indexed(cell, _) => of[usize::from(cell)..].iter().all(|is| *is),
        };
        match *op {
            Op::Set { .. }
            | Op::Add { .. }
            | Op::Branch { .. }
            | Op::Jump { .. }
            | Op::Accept { .. }
            | Op::End => true,
            Op::Store { at, .. } => self.memory != Memory::Sc || all(&self.private[thread], at),
            Op::Load { at, .. } => {
                let is_locked = self.locked[usize::from(state.threads[thread].cell(at))];
                all(&self.quiet[thread], at) || is_locked && self.holds(state, thread)
            }
            _ => false,
        }
    }

    /// Stores the possible actions in `actions`.
    pub fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.clear();
        if state.exited {
            return;
        }
        for (number, program) in self.programs.iter().enumerate() {
            let thread = &state.threads[number];
            let is_empty = thread.stores().is_empty();
            let mut add = |choice: u8| actions.push(Action { thread: number as u8, choice });
            if !is_empty {
                add(0);
            }
            if self.memory.reorders_stores() {
                (1..thread.stores().len()).filter(|store| thread.may_overtake(*store)).for_each(|store| {
                    add(OVERTAKES + store as u8);
                });
            }
            if thread.status != Status::Running || thread.barrier != 0 {
                continue;
            }
            let old = self.old_values(state, number);
            old.iter().for_each(|old| add(OLD + *old as u8));
            if old.iter().any(|old| self.is_as_current(state, number, *old)) {
                continue; // it is older than the value in memory
            }
            match program.ops[usize::from(thread.step)] {
                Op::Load { .. } | Op::Store { .. } | Op::WriteCell { .. } | Op::WriteValue { .. } => add(1),
                Op::TestCancel | Op::Cancel { .. } => add(1),
                Op::Choose { .. } => (1..=2).for_each(add),
                Op::CompareExchange { at, release: false, .. } if self.memory.reorders_stores() => {
                    if thread.stores().iter().all(|(cell, _, _)| *cell != at) {
                        add(1);
                    }
                }
                _ if !is_empty => {} // a locked instruction or a system call that has a barrier
                Op::FutexWake { at, count, all_from } => {
                    let sleeping = sleeping_on(state, at).count() as u8;
                    let all = thread.registers[usize::from(count)] >= all_from;
                    (1..=if all { 1 } else { sleeping.max(1) }).for_each(add);
                }
                _ => add(1),
            }
        }
    }

    /// Performs an action. Returns the promise that it breaks.
    pub fn perform(&self, state: &mut State, action: Action, log: &mut Log) -> Result<(), String> {
        let thread = usize::from(action.thread);
        if (1..OVERTAKES).contains(&action.choice) {
            state.threads[thread].fresh = 0;
            self.step(state, thread, action.choice, log)?;
            return self.settle(state, thread, log);
        }
        let store = usize::from(action.choice.saturating_sub(OVERTAKES));
        let (cell, value) = state.threads[thread].take(store);
        note(log, thread, u16::MAX, || format!("{} = {value} reaches the memory", self.promises.name(cell)));
        self.check_memory(state, cell)?;
        self.change(state, thread, cell, value);
        self.drain_unseen(state, thread, log)?;
        if state.threads[thread].is_passed() { self.end_barriers(state, thread, log) } else { Ok(()) }
    }

    /// Moves stores to the memory as far as no other thread can notice when that happens.
    fn drain_unseen(&self, state: &mut State, thread: usize, log: &mut Log) -> Result<(), String> {
        let mut drained = false;
        while let Some(store) = self.unseen_store(&state.threads[thread], thread) {
            let (cell, value) = state.threads[thread].take(store);
            state.cells[usize::from(cell)] = value;
            drained = true;
        }
        let passed = drained && state.threads[thread].is_passed();
        if passed { self.end_barriers(state, thread, log) } else { Ok(()) }
    }

    /// Returns the number of the first store that can reach the memory now without a notice of other threads.
    fn unseen_store(&self, thread: &Thread, number: usize) -> Option<usize> {
        let last = if self.memory.reorders_stores() { thread.stores().len() } else { 1 };
        let unseen = |store: &usize| {
            let cell = usize::from(thread.stores()[*store].0);
            (self.locked[cell] || self.private[number][cell]) && (*store == 0 || thread.may_overtake(*store))
        };
        (0..last.min(thread.stores().len())).find(unseen)
    }

    /// Returns whether the thread holds the lock.
    fn holds(&self, state: &State, thread: usize) -> bool {
        usize::from(state.load(thread, self.lock_owner)) == thread + 1
    }

    fn end_barriers(&self, state: &mut State, empty: usize, log: &mut Log) -> Result<(), String> {
        (0..self.programs.len()).try_for_each(|waiting| self.end_barrier(state, waiting, empty, log))
    }

    /// Notes that the stores of `empty` were in memory during the membarrier(2) of `waiting`.
    fn end_barrier(
        &self,
        state: &mut State,
        waiting: usize,
        empty: usize,
        log: &mut Log,
    ) -> Result<(), String> {
        let before = state.threads[waiting].barrier;
        state.threads[waiting].barrier &= !(1 << empty);
        if before & 1 << empty != 0 {
            state.threads[empty].forget();
        }
        if before == 0 || state.threads[waiting].barrier != 0 {
            return Ok(());
        }
        state.threads[waiting].step += 1;
        state.threads[waiting].fresh = 0;
        state.threads[waiting].forget();
        self.settle(state, waiting, log)
    }

    /// Executes the local steps that follow, and clears the registers that nothing reads any more.
    fn settle(&self, state: &mut State, thread: usize, log: &mut Log) -> Result<(), String> {
        let program = &self.programs[thread];
        for _ in 0..1000 {
            let step = usize::from(state.threads[thread].step);
            let running = state.threads[thread].status == Status::Running;
            if running
                && state.threads[thread].barrier == 0
                && self.is_local(state, thread, &program.ops[step])
            {
                self.step(state, thread, 1, log)?;
                continue;
            }
            let ended = state.threads[thread].status == Status::Ended;
            for (register, live) in state.threads[thread].registers.iter_mut().zip(program.live[step]) {
                *register = if live && !ended { *register } else { 0 };
            }
            let loaded = program.loaded[step];
            state.threads[thread].history.keep(|_, cell| !ended && loaded[usize::from(cell)]);
            return self.drain_unseen(state, thread, log);
        }
        panic!("{}: an endless loop of local steps", program.name)
    }

    /// Fails if the thread may not access the cell now.
    fn touch(&self, state: &State, thread: usize, cell: Cell) -> Result<(), String> {
        if self.locked[usize::from(cell)] && !self.holds(state, thread) {
            return Err(format!("{} is used without the lock", self.promises.name(cell)));
        }
        self.check_memory(state, cell)
    }

    /// Fails if the stream's memory was freed.
    fn check_memory(&self, state: &State, cell: Cell) -> Result<(), String> {
        match state.freed && cell >= self.promises.first_cell_of_stream {
            true => Err(format!("{} is used after the stream was freed", self.promises.name(cell))),
            false => Ok(()),
        }
    }

    pub(super) fn load(&self, state: &State, thread: usize, cell: Cell) -> Result<u8, String> {
        self.touch(state, thread, cell)?;
        Ok(state.load(thread, cell))
    }

    pub(super) fn write(&self, state: &mut State, byte: u8) -> Result<(), String> {
        let has_room = state.append(byte);
        self.promises.check_file(state.file())?;
        if has_room { Ok(()) } else { Err("the file grows without end".into()) }
    }

    fn store(&self, state: &mut State, thread: usize, cell: Cell, value: u8, release: bool) {
        match self.memory {
            Memory::Sc => state.cells[usize::from(cell)] = value,
            _ => state.threads[thread].push(cell, value, release),
        }
    }

    fn step(&self, state: &mut State, thread: usize, choice: u8, log: &mut Log) -> Result<(), String> {
        let step = state.threads[thread].step;
        let op = self.programs[thread].ops[usize::from(step)];
        state.threads[thread].step += 1;
        let me = state.threads[thread];
        let name = |cell: Cell| self.promises.name(cell);
        let mut effect = |text: &dyn Fn() -> String| note(log, thread, step, text);
        match op {
            Op::Load { to, at, acquire } => {
                let value = self.found(state, thread, me.cell(at), choice, acquire)?;
                let old = if choice >= OLD { " (old)" } else { "" };
                effect(&|| format!("{} is {value}{old}", name(me.cell(at))));
                state.threads[thread].registers[usize::from(to)] = value;
            }
            Op::Store { at, value, release } => {
                self.touch(state, thread, me.cell(at))?;
                effect(&|| format!("{} = {}", name(me.cell(at)), me.value(value)));
                self.store(state, thread, me.cell(at), me.value(value), release);
            }
            Op::CompareExchange { .. } => return self.compare_exchange(state, thread, choice, op, log),
            Op::FetchAdd { at, delta } => {
                let found = self.load(state, thread, at)?;
                effect(&|| format!("{}: {found} {delta:+}", name(at)));
                self.change(state, thread, at, found.wrapping_add_signed(delta));
                state.threads[thread].forget();
            }
            Op::WriteCell { .. } | Op::WriteValue { .. } => {
                return self.step_of_write(state, thread, choice, op, log);
            }
            Op::Set { to, value } => state.threads[thread].registers[usize::from(to)] = me.value(value),
            Op::Add { to, value } => {
                let register = &mut state.threads[thread].registers[usize::from(to)];
                *register = register.wrapping_add(value);
            }
            Op::Branch { left, test, right, target } => {
                let (left, right) = (me.registers[usize::from(left)], me.value(right));
                let jumps = match test {
                    Test::Same => left == right,
                    Test::Differs => left != right,
                    Test::Less => left < right,
                };
                state.threads[thread].step = if jumps { target } else { step + 1 };
            }
            Op::Jump { target } => state.threads[thread].step = target,
            Op::Choose { target } => {
                effect(&|| ["does so", "does not"][usize::from(choice == 1)].into());
                state.threads[thread].step = if choice == 1 { step + 1 } else { target };
            }
            Op::Accept { bytes } => state.threads[thread].accepted = me.registers[usize::from(bytes)],
            Op::End => {
                state.threads[thread].step = step;
                state.threads[thread].status = Status::Ended;
            }
            _ => return self.system_call(state, thread, choice, op, log),
        }
        Ok(())
    }
}
