//! Loads that return old values, and the changes of the memory that make values old.

use super::history::EARLY;
use super::machine::{Cell, Op, State, Status};
use super::run::{Action, Log, Machine, Memory, OVERTAKES, note};

/// From this choice on, up to those of stores that overtake, a load returns the old value of an entry of the thread's history.
pub(super) const OLD: u8 = 32;

impl Machine {
    /// Returns the numbers of the old values that the thread's next step may return in place of the value in memory: a load, a
    /// byte that write(2) copies, or a compare and exchange that then fails. The numbers below [`EARLY`] are of values without
    /// an order. Of equal values only the oldest is taken: it leaves every choice to later loads that a newer one leaves.
    pub(super) fn old_values(&self, state: &State, thread: usize) -> Vec<usize> {
        let me = &state.threads[thread];
        let mut found: Vec<(usize, u8)> = Vec::new();
        let (cell, other_than) = match self.programs[thread].ops[usize::from(me.step)] {
            Op::Load { at, .. } | Op::WriteCell { at, .. } => (me.cell(at), None),
            Op::CompareExchange { at, expected, release, .. } if !release || me.stores().is_empty() => {
                (at, Some(expected))
            }
            _ => return Vec::new(),
        };
        if me.stores().iter().any(|(stored, _, _)| *stored == cell) {
            return Vec::new();
        }
        let early = me.history.early().iter().enumerate().map(|(number, (of, value))| (number, *of, *value));
        let ordered = me.history.ordered().iter().enumerate().filter(|(_, old)| !old.only_time);
        let ordered = ordered.map(|(number, old)| (EARLY + number, old.cell, old.value));
        for (number, of, value) in early.chain(ordered) {
            let is_known = found.iter().any(|(_, known)| *known == value || other_than.is_some());
            if of == cell && Some(value) != other_than && !is_known {
                found.push((number, value));
            }
        }
        found.into_iter().map(|(number, _)| number).collect()
    }

    fn old_value(&self, state: &State, thread: usize, number: usize) -> u8 {
        let history = &state.threads[thread].history;
        number
            .checked_sub(EARLY)
            .map_or_else(|| history.early()[number].1, |entry| history.ordered()[entry].value)
    }

    /// Returns whether the old value makes the thread do the same as the value in memory.
    pub(super) fn is_as_current(&self, state: &State, thread: usize, number: usize) -> bool {
        let me = &state.threads[thread];
        let current = |cell: Cell| state.cells[usize::from(cell)];
        match self.programs[thread].ops[usize::from(me.step)] {
            Op::CompareExchange { at, expected, .. } => current(at) != expected,
            Op::Load { at, .. } | Op::WriteCell { at, .. } => {
                current(me.cell(at)) == self.old_value(state, thread, number)
            }
            _ => false,
        }
    }

    /// Returns whether the action returns an old value and the one in memory would do something else.
    pub(super) fn differs_by_age(&self, state: &State, action: Action) -> bool {
        let is_old = (OLD..OVERTAKES).contains(&action.choice);
        is_old && !self.is_as_current(state, usize::from(action.thread), usize::from(action.choice - OLD))
    }

    /// Returns the value that the thread's next step finds in the cell, by the choice of its action.
    pub(super) fn found(
        &self,
        state: &mut State,
        thread: usize,
        cell: Cell,
        choice: u8,
        acquire: bool,
    ) -> Result<u8, String> {
        let current = self.load(state, thread, cell)?;
        let Some(number) = choice.checked_sub(OLD).map(usize::from) else {
            state.threads[thread].history.return_value(cell, None, acquire);
            return Ok(current);
        };
        let value = self.old_value(state, thread, number);
        if let Some(entry) = number.checked_sub(EARLY) {
            state.threads[thread].history.return_value(cell, Some(entry), acquire);
        }
        Ok(value)
    }

    /// Changes the memory. Other threads that may load the cell before their next barrier remember the old value.
    pub(super) fn change(&self, state: &mut State, thread: usize, cell: Cell, value: u8) {
        let old = std::mem::replace(&mut state.cells[usize::from(cell)], value);
        if self.memory != Memory::Unordered {
            return;
        }
        state.threads[thread].history.keep(|_, of| of != cell);
        for (other, program) in self.programs.iter().enumerate() {
            let thread_state = &mut state.threads[other];
            let loads = program.loaded[usize::from(thread_state.step)][usize::from(cell)];
            if other != thread && old != value && loads && thread_state.status != Status::Ended {
                let has_room = thread_state.history.remember(cell, old);
                self.unordered.set(self.unordered.get() || !has_room);
            }
        }
    }

    /// Returns the byte that write(2) copies from the cell.
    pub(super) fn copied(
        &self,
        state: &mut State,
        thread: usize,
        cell: Cell,
        choice: u8,
    ) -> Result<u8, String> {
        self.found(state, thread, cell, choice, false)
    }

    pub(super) fn compare_exchange(
        &self,
        state: &mut State,
        thread: usize,
        choice: u8,
        op: Op,
        log: &mut Log,
    ) -> Result<(), String> {
        let Op::CompareExchange { at, expected, new, ok, acquire, .. } = op else {
            unreachable!("no exchange")
        };
        let found = self.found(state, thread, at, choice, false)?;
        let me = &mut state.threads[thread];
        note(log, thread, me.step - 1, || {
            format!("{}: {found}, {expected} becomes {new}", self.promises.name(at))
        });
        me.registers[usize::from(ok)] = u8::from(found == expected);
        if found == expected {
            me.history.keep(|_, _| !acquire);
            self.change(state, thread, at, new);
        }
        Ok(())
    }
}
