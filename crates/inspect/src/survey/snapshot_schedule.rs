//! Chooses the processes whose buffers are read at a sample, within a small part of one CPU.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::survey::process::SurveyedProcess;
use crate::survey::process_reader::ProcessReader;

/// Buffer snapshots may take 1/250 of the time of one CPU.
const BUDGET_PART: u32 = 250;
/// CPU time for the first snapshots, which have to search for the streams.
const FIRST_BUDGET_NS: i64 = 20_000_000;
/// Limit of unused time that is saved for later samples.
const SAVED_BUDGET_MAX_NS: i64 = 10_000_000;
/// Limit of the CPU time that expensive snapshots have used in advance; 1.5 s without snapshots repay it. Without this limit, one search
/// of a large heap would delay all others for half a minute.
const MAX_DEBT_NS: i64 = 6_000_000;
/// Samples between two snapshots of an idle process without pending bytes.
const IDLE_EVERY: u64 = 8;

/// The budget for buffer snapshots, and the processes that are due.
#[derive(Debug)]
pub(super) struct SnapshotSchedule {
    thorough: bool,
    budget_ns: i64,
    started: Instant,
    sample: u64,
    /// Whether the processes that had pending bytes are read first. It changes each time the budget is used up, so that neither they nor
    /// the others wait for long.
    pending_first: bool,
    /// Number of the sample of the last snapshot, by PID.
    last_snapshots: HashMap<u32, u64>,
}

impl SnapshotSchedule {
    pub fn new(thorough: bool) -> SnapshotSchedule {
        SnapshotSchedule {
            thorough,
            budget_ns: FIRST_BUDGET_NS,
            started: Instant::now(),
            sample: 0,
            pending_first: false,
            last_snapshots: HashMap::new(),
        }
    }

    /// Reads the buffers of the processes that are due, longest not read or with pending bytes first, until the budget is used up.
    ///
    /// In a thorough survey only the reader's deadline ends this.
    pub fn take_due(
        &mut self,
        processes: &mut HashMap<u32, SurveyedProcess>,
        reader: &mut ProcessReader,
        since: Duration,
    ) {
        self.sample += 1;
        self.last_snapshots.retain(|pid, _| processes.contains_key(pid));
        self.budget_ns = (self.budget_ns.max(-MAX_DEBT_NS) + (since / BUDGET_PART).as_nanos() as i64)
            .min(SAVED_BUDGET_MAX_NS.max(self.budget_ns));
        let had_budget = self.budget_ns > 0;
        let mut due: Vec<(bool, u64, u32)> =
            processes.iter_mut().filter_map(|(pid, one)| self.due(*pid, one)).collect();
        due.sort_unstable();
        for (_, _, pid) in due {
            let Some(one) = processes.get_mut(&pid) else { continue };
            if self.budget_ns <= 0 && !self.thorough {
                break;
            }
            let before_ns = reader.cpu_ns();
            if one.streams.take_snapshot(pid, reader, self.started.elapsed().as_secs_f64()) {
                self.last_snapshots.insert(pid, self.sample);
            }
            if !one.has_its_number() {
                one.streams.forget();
            }
            self.budget_ns -= (reader.cpu_ns() - before_ns) as i64;
        }
        self.pending_first ^= had_budget && self.budget_ns <= 0;
    }

    /// Returns whether the process is read after others, the sample of its last snapshot and its PID if it is due.
    fn due(&self, pid: u32, one: &mut SurveyedProcess) -> Option<(bool, u64, u32)> {
        if one.was_busy() {
            one.streams.forget();
        }
        if !one.is_readable() {
            one.streams.set_not_due();
            return None;
        }
        let last = self.last_snapshots.get(&pid).copied();
        if last.is_none() || one.was_active() {
            one.streams.await_snapshot();
        }
        let is_due = self.thorough
            || one.streams.awaits_snapshot()
            || one.streams.has_pending()
            || last.is_none_or(|last| self.sample - last >= IDLE_EVERY);
        let is_later = self.pending_first && !one.streams.has_pending();
        is_due.then_some((is_later, last.unwrap_or(0), pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expensive_snapshot_delays_the_others_for_two_seconds_at_most() {
        let mut schedule = SnapshotSchedule::new(false);
        schedule.budget_ns = -100_000_000;
        for _ in 0..2 {
            schedule.take_due(&mut HashMap::new(), &mut ProcessReader::default(), Duration::from_secs(1));
        }
        assert!(schedule.budget_ns > 0, "{}", schedule.budget_ns);
    }
}
