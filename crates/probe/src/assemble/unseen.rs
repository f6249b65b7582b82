//! What went unseen: spans of time in which nobody looked, and the kernel's totals that tell how much it was.

use weir_model::trace::{IoTotals, What};

use super::{Assembler, Live, descriptors, scale};

impl Assembler {
    /// What the kernel counted against what was seen, where calls went unseen.
    pub(super) fn settle(&mut self, live: &Live, io: Option<IoTotals>) {
        let process = &mut self.processes[live.process];
        let Some(total) = io.or(live.latest) else { return };
        let own = match live.at_start {
            Some(before) => scale::less(total, before),
            None => total,
        };
        process.io = Some(own);
        if let Some(since_s) = live.unwatched_since_s.or(self.unwatched_since_s) {
            // What was closed before the first look away is known whole.
            let known_until_s =
                self.unwatched.iter().find(|away| away.1 > away.0).map_or(f64::INFINITY, |away| away.0);
            let (open, done) = self.flows.open_and_done(process.pid, since_s, known_until_s);
            scale::to_totals(open, &done, &self.files.all, own);
        }
    }

    pub(super) fn unwatched(&mut self, pid: u32, at_s: f64, until_ns: u64) {
        if pid == 0 {
            self.unwatched_since_s.get_or_insert(at_s);
        } else {
            self.live_of(pid, at_s).unwatched_since_s.get_or_insert(at_s);
        }
        if pid != 0 && !self.files.told_by_kernel {
            self.with_table(pid, |table, files| descriptors::renew(table, files, pid));
        }
        let until_s = self.seconds(until_ns);
        if pid == 0 {
            self.unwatched.push((at_s, until_s));
        }
        self.event(at_s, pid, pid, What::Unwatched { until_s });
    }
}
