//! Measures the silence of a child that weir can abandon.

use std::time::Duration;

use crate::clock::process_cpu_ns;
use crate::expendable::{CHECK, Limits, NoAnswer};
use crate::{proc, process_stat};

/// Measures how long a child has been silent, in intervals, so that a time in which weir itself is stopped does not count.
pub(crate) struct SilenceWatch {
    pid: u32,
    cpu_ns: u64,
    pub blocked: Duration,
    total: Duration,
}

impl SilenceWatch {
    pub fn new(pid: u32) -> SilenceWatch {
        SilenceWatch { pid, cpu_ns: process_cpu_ns(pid), blocked: Duration::ZERO, total: Duration::ZERO }
    }

    /// Returns which limit the child has reached after another interval.
    pub fn check(&mut self, limits: Limits) -> Option<NoAnswer> {
        let cpu_ns = process_cpu_ns(self.pid);
        let works = cpu_ns != self.cpu_ns || is_runnable(self.pid);
        self.cpu_ns = cpu_ns;
        self.blocked = if works { Duration::ZERO } else { self.blocked + CHECK };
        self.total += CHECK;
        if self.blocked >= limits.blocked {
            return Some(NoAnswer::Blocked);
        }
        limits.total.filter(|total| self.total >= *total).map(|_| NoAnswer::Late)
    }
}

/// Returns whether a thread of the process runs or waits for a processor.
fn is_runnable(pid: u32) -> bool {
    let state = |tid: u32| process_stat::read(tid).map(|stat| stat.state);
    proc::threads(pid).into_iter().any(|tid| state(tid) == Some(b'R'))
}
