//! The command is stopped once, before its own code begins, and then let go if nothing else is to be seen of it from
//! outside: the C library is there, nothing was written yet, and whoever wants to watch its writes can begin to. Of one that
//! is known before, the kernel says when that is; others are stopped at their execve(2) as well.
//!
//! A program that others start is told of when it runs already, and has come past that place before it can be seized.

use std::path::Path;

use weir_trace_api::breakpoint_traps::BreakpointTraps;
use weir_walkers::begins_with_streams;

use super::load::Processes;

#[derive(Default)]
pub(super) struct CommandStart {
    /// Who is on its way.
    pid: Option<u32>,
    /// The kernel stops it.
    processes: Option<Processes>,
    /// It has begun.
    begun: bool,
}

/// A trap where the program's own code begins; None: it has no streams there, or it cannot be set.
pub(super) fn at_entry(pid: u32) -> Option<BreakpointTraps> {
    let exe = format!("/proc/{pid}/exe");
    Some(Path::new(&exe)).filter(|exe| begins_with_streams(exe)).and_then(|_| BreakpointTraps::at_entry(pid))
}

impl CommandStart {
    /// This one is traced only so far. With what the kernel knows of it, if it is that which stops it.
    pub fn begin(&mut self, pid: u32, processes: Option<Processes>) {
        *self = Self { pid: Some(pid), processes, begun: false };
    }

    /// Of one that the kernel was to stop, where the list of its streams is.
    pub fn list(&self, pid: u32) -> Option<u64> {
        let known = self.processes.as_ref().filter(|_| self.pid == Some(pid))?.get(&pid, 0).ok()?;
        Some(known.list).filter(|&list| list != 0)
    }

    /// A process, perhaps this one, stands where its own code begins.
    pub fn begun(&mut self, pid: u32) {
        self.begun |= self.pid == Some(pid);
    }

    /// Whether it is to be let go now.
    pub fn is_over(&mut self, pid: u32) -> bool {
        let over = self.begun && self.pid == Some(pid);
        if over {
            *self = Self::default();
        }
        over
    }

    /// It is gone.
    pub fn remove(&mut self, pid: u32) {
        if self.pid == Some(pid) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_begun_is_let_go_once() {
        let mut passing = CommandStart::default();
        passing.begun(7);
        assert!(!passing.is_over(7), "it is traced for another reason");
        passing.begin(7, None);
        passing.begun(8);
        assert!(!passing.is_over(7) && !passing.is_over(8));
        passing.begun(7);
        assert!(passing.is_over(7) && !passing.is_over(7));
    }

    #[test]
    fn nobody_waits_for_one_that_is_gone() {
        let mut passing = CommandStart::default();
        passing.begin(7, None);
        passing.remove(8);
        assert_eq!(passing.pid, Some(7));
        passing.remove(7);
        assert_eq!(passing.pid, None);
    }
}
