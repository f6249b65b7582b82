//! The part of the tracing cost that is in the CPU time of each process.

use foldhash::HashMap;

use super::{Process, Recording};

/// Recorded calls of each process, by which the cost of tracing is divided among the processes.
#[derive(Debug, Clone, Default)]
pub struct TracingCost {
    cost_s: f64,
    calls: HashMap<u32, u64>,
    all_calls: u64,
}

impl TracingCost {
    /// Counts the calls of each process.
    pub fn new(recording: &Recording) -> Self {
        let mut cost = Self { cost_s: recording.overhead.cost_s.max(0.0), ..Self::default() };
        let moving = recording.counts.iter().map(|counts| (counts.pid, counts.calls));
        let others = recording.other_calls.iter().map(|other| (other.pid, other.calls));
        for (pid, calls) in moving.chain(others) {
            *cost.calls.entry(pid).or_default() += calls;
            cost.all_calls += calls;
        }
        cost
    }

    /// Returns the CPU seconds of a process in the kernel without its share of the cost of tracing; at least 0. With ptrace a part
    /// of the cost is CPU time of the tracer, so the result may be too small, but it does not blame a program for its tracing.
    pub fn system_s(&self, process: &Process) -> f64 {
        let calls = self.calls.get(&process.pid).copied().unwrap_or(0);
        let share = calls as f64 / self.all_calls.max(1) as f64;
        (process.system_s - self.cost_s * share).max(0.0)
    }
}
