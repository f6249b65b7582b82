//! Loads that return old values, and the changes of the memory that make values old.

use super::machine::{Cell, Op, State, Status};
use super::run::{Log, Machine, Memory, note};

/// From this choice on, up to those of stores that overtake, a load returns the old value of an entry of the thread's history.
pub(super) const OLD: u8 = 32;

impl Machine {
    /// Returns the numbers of the entries of the thread's history that its next step may return in place of the value in memory:
    /// a load, a byte that write(2) copies, or a compare and exchange that then fails.
    pub(super) fn old_values<'a>(&self, state: &'a State, thread: usize) -> impl Iterator<Item = usize> + 'a {
        let me = &state.threads[thread];
        let (cell, other_than) = match self.programs[thread].ops[usize::from(me.step)] {
            Op::Load { at, .. } | Op::WriteCell { at, .. } => (Some(me.cell(at)), None),
            Op::CompareExchange { at, expected, release, .. } if !release || me.stores().is_empty() => {
                (Some(at), Some(expected))
            }
            _ => (None, None),
        };
        let own = me.stores().iter().any(|(stored, _, _)| Some(*stored) == cell);
        let entries = me.history().iter().enumerate().filter(move |(_, old)| {
            Some(old.cell) == cell && !old.only_time && !own && Some(old.value) != other_than
        });
        entries.map(|(entry, _)| entry)
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
        let entry = (choice >= OLD).then(|| usize::from(choice - OLD));
        let value = entry.map_or(current, |entry| state.threads[thread].history()[entry].value);
        state.threads[thread].return_value(cell, entry, acquire);
        Ok(value)
    }

    /// Changes the memory. Other threads that may load the cell before their next barrier remember the old value.
    pub(super) fn change(&self, state: &mut State, thread: usize, cell: Cell, value: u8) {
        let old = std::mem::replace(&mut state.cells[usize::from(cell)], value);
        if self.memory != Memory::Unordered {
            return;
        }
        state.threads[thread].keep(|_, of| of != cell);
        for (other, program) in self.programs.iter().enumerate() {
            let thread_state = &mut state.threads[other];
            let loads = program.loaded[usize::from(thread_state.step)][usize::from(cell)];
            if other != thread && old != value && loads && thread_state.status != Status::Ended {
                let has_room = thread_state.remember(cell, old);
                self.forgot.set(self.forgot.get() || !has_room);
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
            me.keep(|_, _| !acquire);
            self.change(state, thread, at, new);
        }
        Ok(())
    }
}
