//! Whose buffers are looked into at a sample: a small part of one processor must do for all.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir_sys::clock::thread_cpu_ns;

use crate::survey::process::SurveyedProcess;

/// The share of time that looks may take, one part in so many.
const SHARE: u32 = 250;
/// What the first ones may take, which have to find the streams.
const CREDIT_FIRST_NS: i64 = 20_000_000;
/// Unused time is kept up to this much.
const CREDIT_MOST_NS: i64 = 10_000_000;
/// A process in which nothing waits and that does nothing is looked at every so many samples.
const IDLE_EVERY: u64 = 8;

/// Which processes are due.
#[derive(Debug)]
pub(super) struct SnapshotSchedule {
    thorough: bool,
    credit_ns: i64,
    began: Instant,
    sample: u64,
    /// The sample of the last look into each.
    looked: HashMap<u32, u64>,
}

impl SnapshotSchedule {
    pub fn new(thorough: bool) -> SnapshotSchedule {
        SnapshotSchedule {
            thorough,
            credit_ns: CREDIT_FIRST_NS,
            began: Instant::now(),
            sample: 0,
            looked: HashMap::new(),
        }
    }

    /// Reads the buffers of those that are due, those first that have waited longest, until the time for it is used up.
    pub fn look(&mut self, processes: &mut HashMap<u32, SurveyedProcess>, since: Duration) {
        self.sample += 1;
        self.looked.retain(|pid, _| processes.contains_key(pid));
        self.credit_ns =
            (self.credit_ns + (since / SHARE).as_nanos() as i64).min(CREDIT_MOST_NS.max(self.credit_ns));
        let now_s = self.began.elapsed().as_secs_f64();
        let mut due: Vec<(u64, u32)> =
            processes.iter_mut().filter_map(|(pid, one)| self.due(*pid, one, now_s)).collect();
        due.sort_unstable();
        for (_, pid) in due {
            let Some(one) = processes.get_mut(&pid) else { continue };
            if self.credit_ns <= 0 && !self.thorough {
                break;
            }
            let start_ns = thread_cpu_ns();
            one.streams.look(pid, self.began.elapsed().as_secs_f64());
            self.credit_ns -= (thread_cpu_ns() - start_ns) as i64;
            self.looked.insert(pid, self.sample);
        }
    }

    /// When it was looked at last, if it is its turn.
    fn due(&self, pid: u32, one: &mut SurveyedProcess, now_s: f64) -> Option<(u64, u32)> {
        one.streams.at(now_s);
        if one.was_busy() {
            one.streams.forget();
        }
        if !one.may_look() {
            return None;
        }
        let last = self.looked.get(&pid).copied();
        let is_due = self.thorough
            || one.was_active()
            || one.streams.has_pending()
            || last.is_none_or(|last| self.sample - last >= IDLE_EVERY);
        is_due.then_some((last.unwrap_or(0), pid))
    }
}
