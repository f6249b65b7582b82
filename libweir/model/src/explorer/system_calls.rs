//! The system calls of a model.

use super::machine::{Cell, Op, State, Status};
use super::run::{Log, Machine, note};

impl Machine {
    pub(super) fn step_of_write(
        &self,
        state: &mut State,
        thread: usize,
        choice: u8,
        op: Op,
        log: &mut Log,
    ) -> Result<(), String> {
        let me = state.threads[thread];
        let (byte, cancels) = match op {
            Op::WriteCell { at, cancels } => (self.copied(state, thread, me.cell(at), choice)?, cancels),
            Op::WriteValue { base, number, cancels } => (base + me.registers[usize::from(number)], cancels),
            _ => unreachable!("no write"),
        };
        if cancels && me.cancelled {
            note(log, thread, me.step - 1, || "the thread is cancelled and ends".into());
            state.threads[thread].status = Status::Ended;
            return Ok(());
        }
        note(log, thread, me.step - 1, || format!("writes {}", super::promises::byte_name(byte)));
        self.write(state, byte)
    }

    pub(super) fn system_call(
        &self,
        state: &mut State,
        thread: usize,
        choice: u8,
        op: Op,
        log: &mut Log,
    ) -> Result<(), String> {
        let me = state.threads[thread];
        let step = me.step - 1;
        match op {
            Op::Membarrier => {
                note(log, thread, step, || "begins".into());
                let full = |other: &usize| !state.threads[*other].is_passed();
                let mask = (0..self.programs.len()).filter(full).fold(0, |mask, other| mask | 1 << other);
                state.threads[thread].barrier = mask;
                state.threads[thread].step = if mask == 0 { step + 1 } else { step };
                let passed = |other: &usize| mask & 1 << other == 0 && (mask == 0 || *other != thread);
                (0..self.programs.len()).filter(passed).for_each(|other| state.threads[other].forget());
            }
            Op::FutexWait { at, expected } => {
                state.threads[thread].forget();
                let sleeps = self.load(state, thread, at)? == me.registers[usize::from(expected)];
                note(log, thread, step, || ["returns at once", "sleeps"][usize::from(sleeps)].into());
                state.threads[thread].status = if sleeps { Status::Sleeping(at) } else { Status::Running };
            }
            Op::FutexWake { at, count, all_from } => {
                state.threads[thread].forget();
                let all = me.registers[usize::from(count)] >= all_from;
                let sleeping: Vec<usize> = sleeping_on(state, at).collect();
                for (number, other) in sleeping.into_iter().enumerate() {
                    if all || number + 1 == usize::from(choice) {
                        note(log, thread, step, || format!("wakes {}", self.programs[other].name));
                        state.threads[other].status = Status::Running;
                    }
                }
            }
            Op::TestCancel if me.cancelled => {
                note(log, thread, step, || "the thread is cancelled and ends".into());
                state.threads[thread].status = Status::Ended;
            }
            Op::Cancel { thread: other } => {
                note(log, thread, step, || format!("cancels {}", self.programs[usize::from(other)].name));
                state.threads[usize::from(other)].cancelled = true;
            }
            Op::Fork => {
                note(log, thread, step, || "a child has a copy of the memory".into());
                self.promises.check_fork(self, state, thread)?;
            }
            Op::Free => {
                note(log, thread, step, || "the stream's memory is freed".into());
                state.freed = true;
            }
            Op::ExitGroup => {
                note(log, thread, step, || format!("the file is {}", self.promises.file_name(state.file())));
                self.promises.check_exit(state, me.registers[usize::from(super::steps::SNAPSHOT)])?;
                state.exited = true;
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn sleeping_on(state: &State, cell: Cell) -> impl Iterator<Item = usize> + '_ {
    let sleeps = move |thread: &usize| state.threads[*thread].status == Status::Sleeping(cell);
    (0..state.threads.len()).filter(sleeps)
}
