//! Stops and continues the worker with the first process.
//!
//! A shell knows only the first process. Ctrl-Z stops the whole process group, but kill(1) only the process that it names, and no
//! process can catch its SIGSTOP. So the watcher checks whether the first process is stopped.

use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process};

use crate::process_stat;

/// The interval between two checks of the first process: short for a user. A check takes about 0.02 ms.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// Sends a signal to a child that has not been reaped.
pub(super) fn send(child: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child as i32) {
        let _ended = kill_process(pid, signal);
    }
}

/// Returns whether a process is stopped by a signal.
pub(super) fn is_stopped(pid: u32) -> bool {
    process_stat::read(pid).is_some_and(|stat| stat.state == b'T')
}

/// Makes the worker stop and continue as the first process does.
pub(super) struct StopFollower {
    worker: u32,
    /// The first process; None if /proc does not show it by this number.
    first: Option<u32>,
    has_stopped: bool,
}

impl StopFollower {
    /// Must be called in a child of the first process.
    pub fn new(worker: u32) -> StopFollower {
        // A /proc of another PID namespace shows other processes by these numbers.
        let own = std::fs::read_link("/proc/self").ok();
        let is_own = own.is_some_and(|name| name.to_str() == Some(&getpid().to_string()));
        let first = getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
        StopFollower { worker, first: first.filter(|_| is_own), has_stopped: false }
    }

    /// Stops the worker if the first process is stopped. Continues the worker, if this value has stopped it, when the first process runs.
    pub fn follow(&mut self) {
        let Some(first) = self.first else { return };
        match (is_stopped(first), self.has_stopped) {
            (true, false) => send(self.worker, Signal::STOP),
            // The first process also passes its SIGCONT on, but that can come before the SIGSTOP of this check.
            (false, true) => send(self.worker, Signal::CONT),
            _ => return,
        }
        self.has_stopped = !self.has_stopped;
    }
}
