//! Programs that are stopped once, where their own code begins, and then let go: the C library is there, nothing was
//! written yet, and whoever wants to watch its writes can begin to.
//!
//! The command itself is on its way there from its execve(2) on. A program that others start is told of when it runs
//! already: it is seized in the hope that it has not come so far yet, for the loader takes its time.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::traps::Traps;
use crate::engine::now_ns;
use crate::place::Allowance;
use crate::ptrace::{may_interrupt, os};
use crate::walk::begins_with_streams;

/// A loader that takes longer than this had passed the place before.
const LATE: Duration = Duration::from_millis(20);
/// One that has no streams by then has none.
const OVER: Duration = Duration::from_secs(1);
/// How often to look for stops meanwhile: somebody stands still.
const PATIENCE: Duration = Duration::from_micros(50);

#[derive(Default)]
pub(super) struct Passing {
    /// Who is on its way.
    since: HashMap<u32, Since>,
    /// When those that were held began; they may have been let go before their execve(2) is told of.
    passed_ns: HashMap<u32, u64>,
    /// Who has begun, and is to be let go.
    begun: Option<u32>,
    allowance: Allowance,
}

struct Since {
    begun: Instant,
    /// When it is to be stopped, if it was not by then; never if it was held.
    late: Option<Instant>,
}

/// A trap where the program's own code begins; None: it has no streams there, or it cannot be set.
pub(super) fn at_entry(pid: u32) -> Option<Traps> {
    let exe = format!("/proc/{pid}/exe");
    Some(Path::new(&exe)).filter(|exe| begins_with_streams(exe)).and_then(|_| Traps::at_entry(pid))
}

impl Passing {
    /// This one stops there, and is traced only so far.
    pub fn add(&mut self, pid: u32) {
        self.since.insert(pid, Since { begun: Instant::now(), late: None });
        self.passed_ns.insert(pid, now_ns());
    }

    /// Becomes the tracer of a program that runs, if there are not too many.
    pub fn seize(&mut self, pid: u32) -> Option<Traps> {
        let traps = Some(pid).filter(|_| self.allowance.take(now_ns())).and_then(at_entry)?;
        os::seize_for_signals(pid).ok()?;
        let begun = Instant::now();
        self.since.insert(pid, Since { begun, late: Some(begun + LATE) });
        Some(traps)
    }

    /// Whether the execve(2) of that time is one that was seen before it was told of.
    pub fn has_passed(&self, pid: u32, at_ns: u64) -> bool {
        self.passed_ns.get(&pid).is_some_and(|passed_ns| at_ns <= *passed_ns)
    }

    pub fn has(&self, pid: u32) -> bool {
        self.since.contains_key(&pid)
    }

    pub fn begun(&mut self, pid: u32) {
        if self.since.remove(&pid).is_some() {
            self.begun = Some(pid);
        }
    }

    /// Whether it is to be let go now.
    pub fn has_begun(&mut self, pid: u32) -> bool {
        self.begun.take_if(|begun| *begun == pid).is_some()
    }

    /// It is gone.
    pub fn remove(&mut self, pid: u32) {
        self.since.remove(&pid);
        self.passed_ns.remove(&pid);
    }

    /// Whether nothing more is to be awaited of it.
    pub fn is_over(&self, pid: u32) -> bool {
        self.since.get(&pid).is_none_or(|since| since.begun.elapsed() > OVER)
    }

    /// Stops those that were seized too late, as soon as it does no harm, to let them go.
    pub fn hurry(&mut self) {
        let now = Instant::now();
        for (pid, since) in &mut self.since {
            if since.late.is_some_and(|late| late <= now) {
                since.late = Some(now + LATE);
                if may_interrupt(*pid, *pid, false) {
                    let _gone = os::interrupt(*pid);
                }
            }
        }
    }

    /// How long to wait for something else; None: as long as one likes.
    pub fn patience(&self) -> Option<Duration> {
        (!self.since.is_empty()).then_some(PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_begun_is_let_go_once() {
        let mut passing = Passing::default();
        passing.begun(7);
        assert!(!passing.has_begun(7), "it is traced for another reason");
        passing.add(7);
        assert!(passing.has(7) && !passing.has_begun(7) && passing.patience().is_some());
        passing.begun(7);
        assert!(passing.has_begun(7) && !passing.has_begun(7) && passing.patience().is_none());
    }

    #[test]
    fn the_next_program_of_one_that_was_held_is_another() {
        let mut passing = Passing::default();
        let before = now_ns();
        passing.add(7);
        assert!(
            passing.has_passed(7, before)
                && !passing.has_passed(7, now_ns() + 1)
                && !passing.has_passed(8, before)
        );
    }
}
