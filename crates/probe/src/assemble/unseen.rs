//! What went unseen: spans of time in which nobody looked, and the kernel's totals that tell how much it was.

use std::collections::{HashMap, HashSet};

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
            let mut aways = self.unwatched.get(&0).into_iter().flatten();
            let known_until_s = aways.find(|away| away.1 > away.0).map_or(f64::INFINITY, |away| away.0);
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
        self.unwatched.entry(pid).or_default().push((at_s, until_s));
        self.event(at_s, pid, pid, What::Unwatched { until_s });
    }

    /// What went on while nobody looked: calls on sockets, which are in no totals, and when others were made last.
    pub(super) fn settle_unwatched(&mut self) {
        let ended = self.processes.iter().filter_map(|process| Some((process.pid, process.ended_s?)));
        let ended: HashMap<u32, f64> = ended.collect();
        let none = Vec::new();
        let everybody = self.unwatched.get(&0).unwrap_or(&none);
        for flow in &mut self.flows.all {
            let ended_s = ended.get(&flow.pid).copied().unwrap_or(f64::INFINITY);
            if self.files.is_socket(flow.file) {
                scale::to_time(flow, everybody, ended_s);
            } else if !flow.exact {
                let own = self.unwatched.get(&flow.pid).unwrap_or(&none);
                flow.last_s = scale::last_s(flow, everybody, ended_s).max(scale::last_s(flow, own, ended_s));
            }
        }
    }

    /// The processes that nobody looked at for some of their time.
    pub(super) fn partly_seen(&self) -> HashSet<u32> {
        let none = Vec::new();
        let spans = |whose: u32| self.unwatched.get(&whose).unwrap_or(&none).iter();
        let partly = self.processes.iter().filter(|process| {
            let ended_s = process.ended_s.unwrap_or(f64::INFINITY);
            let within = |&&(from_s, to_s): &&(f64, f64)| {
                to_s > from_s && from_s < ended_s && process.started_s < to_s
            };
            spans(0).chain(spans(process.pid)).any(|span| within(&span))
        });
        partly.map(|process| process.pid).collect()
    }
}
