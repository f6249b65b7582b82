//! What went unseen: spans of time in which nobody looked, and the kernel's totals that tell how much it was.

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt, HashSet};
use weir_model::Direction;
use weir_model::trace::{EventKind, IoTotals, StreamCounts};

use super::Live;
use crate::Recorder;
use crate::fd_revalidation::doubt;
use crate::gap_attribution::CallsAndBytes;
use crate::sampling_gaps::GapStream;
use crate::scaling::{self, KernelTotal, ObservedPart};

impl Recorder {
    /// What the kernel counted against what was seen, where calls went unseen.
    pub(super) fn settle(&mut self, mut live: Live, io: Option<IoTotals>, at_s: f64) {
        let pid = self.processes[live.process].pid;
        self.last_pause(pid, &mut live, io, at_s);
        let Some(total) = io.or(live.latest) else { return };
        let own = match live.at_start {
            Some(before) => total.since(before),
            None => total,
        };
        self.processes[live.process].io = Some(own);
        if live.unwatched_since_s.or(self.unwatched_since_s).is_some() {
            for direction in [Direction::In, Direction::Out] {
                self.settle_direction(&live, pid, own, direction, at_s);
            }
        }
    }

    fn settle_direction(&mut self, live: &Live, pid: u32, own: IoTotals, direction: Direction, at_s: f64) {
        let total = match direction {
            Direction::In => KernelTotal { calls: own.read_calls, bytes: own.read_bytes },
            _ => KernelTotal { calls: own.write_calls, bytes: own.written_bytes },
        };
        let here = |stream: &GapStream| stream.2 == direction;
        let mut shares: Vec<(Option<GapStream>, CallsAndBytes)> = live
            .pauses
            .shares
            .iter()
            .filter(|(stream, _)| here(stream))
            .map(|(stream, share)| (stream.1.map(|_| *stream), share.0))
            .collect();
        shares.sort_by_key(|share| share.0.map(|(image, place, _)| (image, place)));
        let mut missed = scaling::unseen(total, self.seen(pid, direction), &shares);
        missed.retain(|(_, sum)| *sum != KernelTotal::default());
        // What one alone can have made is known exactly, what several have made together is in their sum.
        let several = missed.len() > 1;
        for (stream, sum) in missed {
            let (image, fd, file) = match stream {
                Some((image, Some((fd, file)), _)) => (image, fd, file),
                _ => (live.image, StreamCounts::UNKNOWN, self.files.unknown_stream()),
            };
            let since_s = stream.and_then(|stream| Some(live.pauses.shares.get(&stream)?.1)).unwrap_or(at_s);
            let index = self.flows.unseen((pid, image, fd, file, direction), since_s);
            let flow = &mut self.flows.all[index];
            scaling::grow(flow, sum.calls, sum.bytes);
            flow.estimated |= several;
            if !flow.is_known() {
                self.doubt_streams(pid, direction);
            }
        }
    }

    /// A part of what a process moved this way went through nobody knows which streams: perhaps these.
    fn doubt_streams(&mut self, pid: u32, direction: Direction) {
        for index in self.flows.of_process(pid).to_vec() {
            let flow = &mut self.flows.all[index];
            flow.exact &= flow.direction != direction;
        }
    }

    /// What was seen of a process, by whether the kernel counts it.
    fn seen(&self, pid: u32, direction: Direction) -> ObservedPart {
        let mut seen = ObservedPart::default();
        let own = self.flows.of_process(pid).iter().map(|&index| &self.flows.all[index]);
        for flow in own.filter(|flow| flow.direction == direction && flow.is_known()) {
            let sum = if self.files.is_socket(flow.file) || flow.in_kernel > 0 {
                &mut seen.perhaps
            } else {
                &mut seen.counted
            };
            sum.calls += flow.calls;
            sum.bytes += flow.bytes;
        }
        seen
    }

    pub(super) fn unwatched(&mut self, pid: u32, at_s: f64, until_ns: u64) {
        let until_s = self.seconds(until_ns);
        if pid == 0 {
            self.unwatched_since_s.get_or_insert(at_s);
            // What begins is said at once, and said again when it is over.
            self.pauses_now = until_s <= at_s;
            for live in self.live.values_mut().filter(|_| !self.pauses_now) {
                live.pauses.went_on(at_s, until_s);
                doubt(&mut live.descriptors.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
            }
        } else {
            self.live_of(pid, at_s).unwatched_since_s.get_or_insert(at_s);
        }
        self.unwatched.entry(pid).or_default().push((at_s, until_s));
        self.event(at_s, pid, pid, EventKind::Unwatched { until_s });
    }

    /// What went on while nobody looked: calls on sockets, which are in no totals, and when others were made last.
    pub(super) fn settle_unwatched(&mut self) {
        let ended = self.processes.iter().filter_map(|process| Some((process.pid, process.ended_s?)));
        let ended: HashMap<u32, f64> = ended.collect();
        let none = Vec::new();
        let everybody = self.unwatched.get(&0).unwrap_or(&none).as_slice();
        let mut own: HashMap<u32, Cow<[(f64, f64)]>> = HashMap::new();
        for flow in self.flows.all.iter_mut().filter(|flow| flow.is_known()) {
            let ended_s = ended.get(&flow.pid).copied().unwrap_or(f64::INFINITY);
            let own = own.entry(flow.pid).or_insert_with(|| match self.unwatched.get(&flow.pid) {
                None => Cow::Borrowed(everybody),
                Some(own) => Cow::Owned(in_turn(everybody.iter().chain(own).copied().collect())),
            });
            if self.files.is_socket(flow.file) {
                scaling::to_time(flow, own, ended_s);
            } else if !flow.exact {
                flow.last_s = scaling::last_s(flow, own, ended_s);
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

/// These spans in order of time, what two have in common only once.
fn in_turn(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut until_s = f64::NEG_INFINITY;
    for span in &mut spans {
        span.0 = span.0.max(until_s);
        span.1 = span.1.max(span.0);
        until_s = span.1;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_spans_have_in_common_counts_once() {
        let spans = vec![(3.0, 5.0), (1.0, 2.0), (4.0, 6.0), (4.5, 4.5)];
        assert_eq!(in_turn(spans), [(1.0, 2.0), (3.0, 5.0), (5.0, 6.0), (6.0, 6.0)]);
    }
}
