//! Spans of time in which calls were not recorded. When a process exits, the kernel's totals minus the observed
//! calls are what the spans contain; they are added to the streams of the recording.

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt, HashSet};
use weir_model::Direction;
use weir_model::trace::{EventKind, IoTotals, StreamCounts};

use super::LiveProcess;
use crate::Recorder;
use crate::fd_revalidation::mark_stale;
use crate::gap_attribution::CallsAndBytes;
use crate::sampling_gaps::GapStream;
use crate::scaling::{self, Extrapolation, KernelTotal, ObservedPart, WaitsInGaps};

impl Recorder {
    /// Closes a process: adds the calls that were not observed to its streams, by the kernel's totals.
    pub(super) fn settle_process(&mut self, mut live: LiveProcess, io: Option<IoTotals>, at_s: f64) {
        self.processes[live.process].threads = live.last_call_ns.len() as u32;
        let pid = self.processes[live.process].pid;
        self.finish_gaps(pid, &mut live, io, at_s);
        let Some(total) = io.or(live.latest_totals) else { return };
        let own = match live.totals_at_start {
            Some(before) => total.since(before),
            None => total,
        };
        self.processes[live.process].io = Some(own);
        if live.unobserved_since_s.or(self.unobserved_since_s).is_some() {
            for direction in [Direction::In, Direction::Out] {
                self.settle_direction(&live, pid, own, direction, at_s);
            }
        }
    }

    fn settle_direction(
        &mut self,
        live: &LiveProcess,
        pid: u32,
        own: IoTotals,
        direction: Direction,
        at_s: f64,
    ) {
        let total = match direction {
            Direction::In => KernelTotal { calls: own.read_calls, bytes: own.read_bytes },
            _ => KernelTotal { calls: own.write_calls, bytes: own.written_bytes },
        };
        let same_direction = |stream: &GapStream| stream.2 == direction;
        let mut shares: Vec<(Option<GapStream>, CallsAndBytes)> = live
            .gaps
            .shares
            .iter()
            .filter(|(stream, _)| same_direction(stream))
            .map(|(stream, share)| (stream.1.map(|_| *stream), share.0))
            .collect();
        shares.sort_by_key(|share| share.0.map(|(image, fd_file, _)| (image, fd_file)));
        let observed = self.observed_part(pid, direction);
        let in_gaps = shares.iter().map(|share| share.1.calls).sum();
        self.counted_parts.insert((pid, direction), scaling::counted_part(total.calls, observed, in_gaps));
        let mut missing = scaling::missing_by_stream(total, observed, &shares);
        self.move_excess(pid, direction, &mut missing);
        missing.retain(|(_, sum)| *sum != KernelTotal::default());
        // The total of one stream is exact; of several only the sum is.
        let several = missing.len() > 1;
        for (stream, sum) in missing {
            let (image, fd, file) = match stream {
                Some((image, Some((fd, file)), _)) => (image, fd, file),
                _ => (live.image, StreamCounts::UNKNOWN, self.files.unknown_stream()),
            };
            let since_s = stream.and_then(|stream| Some(live.gaps.shares.get(&stream)?.1)).unwrap_or(at_s);
            let index = self.streams.add_unobserved((pid, image, fd, file, direction), since_s);
            let waits = self.waits_in_gaps();
            self.estimated_streams.insert((pid, image, fd, file, direction));
            let stream = &mut self.streams.all[index];
            scaling::add_unobserved(stream, sum.calls, sum.bytes, waits);
            stream.estimated |= several;
            if !stream.is_known() {
                self.mark_inexact(pid, direction);
            }
        }
    }

    /// Marks a process's streams of this direction as inexact: unknown streams may be these.
    fn mark_inexact(&mut self, pid: u32, direction: Direction) {
        for index in self.streams.of_process(pid).to_vec() {
            let stream = &mut self.streams.all[index];
            stream.exact &= stream.direction != direction;
        }
    }

    /// Returns the observed calls of a process, by whether the kernel counts them.
    fn observed_part(&self, pid: u32, direction: Direction) -> ObservedPart {
        let mut observed = ObservedPart::default();
        let own = self.streams.of_process(pid).iter().map(|&index| &self.streams.all[index]);
        for stream in own.filter(|stream| stream.direction == direction && stream.is_known()) {
            let sum = if self.files.is_socket(stream.file) || stream.in_kernel > 0 {
                &mut observed.perhaps
            } else {
                &mut observed.counted
            };
            sum.calls += stream.calls;
            sum.bytes += stream.bytes;
        }
        observed
    }

    pub(super) fn record_gap(&mut self, pid: u32, at_s: f64, until_ns: u64) {
        let until_s = self.seconds(until_ns);
        if pid == 0 {
            self.unobserved_since_s.get_or_insert(at_s);
            // A gap is reported when it begins, with an empty span, and again when it ends.
            self.in_global_gap = until_s <= at_s;
            if !self.in_global_gap {
                self.window_start_s = until_s;
            }
            for live in self.live.values_mut().filter(|_| !self.in_global_gap) {
                live.gaps.extend_last(at_s, until_s);
                mark_stale(&mut live.descriptors.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
            }
        } else {
            self.live_process(pid, at_s).unobserved_since_s.get_or_insert(at_s);
        }
        self.unobserved_spans.entry(pid).or_default().push((at_s, until_s));
        self.push_event(at_s, pid, pid, EventKind::Gap { until_s });
    }

    /// The eBPF backend, which reports files, detaches only the program at system calls in a gap.
    fn waits_in_gaps(&self) -> WaitsInGaps {
        if self.files.kernel_reports_files { WaitsInGaps::Measured } else { WaitsInGaps::NotMeasured }
    }

    /// Extrapolates what the kernel's totals lack: calls on sockets, copies within the kernel, and the times of the last calls.
    pub(super) fn settle_unobserved_spans(&mut self) {
        let mut extrapolated = Vec::new();
        let ended = self.processes.iter().filter_map(|process| Some((process.pid, process.ended_s?)));
        let ended: HashMap<u32, f64> = ended.collect();
        let none = Vec::new();
        let of_all = self.unobserved_spans.get(&0).unwrap_or(&none).as_slice();
        let mut own: HashMap<u32, Cow<[(f64, f64)]>> = HashMap::new();
        for (index, stream) in self.streams.all.iter_mut().enumerate().filter(|(_, one)| one.is_known()) {
            let ended_s = ended.get(&stream.pid).copied().unwrap_or(f64::INFINITY);
            let own = own.entry(stream.pid).or_insert_with(|| match self.unobserved_spans.get(&stream.pid) {
                None => Cow::Borrowed(of_all),
                Some(own) => Cow::Owned(without_overlaps(of_all.iter().chain(own).copied().collect())),
            });
            // The totals lack splice(2), tee(2) and vmsplice(2), and contain sendfile(2).
            if self.files.is_socket(stream.file) || stream.in_kernel > 0 {
                extrapolated.extend(scaling::extrapolation(stream, own, ended_s).map(|one| (index, one)));
            } else if !stream.exact {
                stream.last_s = scaling::estimated_last_s(stream, own, ended_s);
            }
        }
        self.add_extrapolated(&extrapolated);
        self.mark_beside_unknown();
    }

    /// Marks the streams beside an unknown one as estimates: the unknown calls may be theirs. Those that got no share of a gap have
    /// at least the calls that were observed; a share can be too large as well.
    fn mark_beside_unknown(&mut self) {
        let unknown: HashSet<(u32, Direction)> = self
            .streams
            .all
            .iter()
            .filter(|stream| !stream.is_known())
            .map(|stream| (stream.pid, stream.direction))
            .collect();
        let all = self.streams.all.iter_mut();
        for stream in all.filter(|stream| unknown.contains(&(stream.pid, stream.direction))) {
            stream.estimated = true;
            let key = (stream.pid, stream.image, stream.fd, stream.file, stream.direction);
            stream.at_least = stream.is_known() && !self.estimated_streams.contains(&key);
        }
    }

    /// Adds the extrapolated calls. Those that the kernel's totals contain are in the unknown streams by now:
    /// they are moved from there, and there are no more of them.
    fn add_extrapolated(&mut self, extrapolated: &[(usize, Extrapolation)]) {
        let mut sums: HashMap<(u32, Direction), (f64, f64)> = HashMap::new();
        for &(index, one) in extrapolated {
            let stream = &self.streams.all[index];
            let sum = sums.entry((stream.pid, stream.direction)).or_default();
            (sum.0, sum.1) = (sum.0 + one.calls, sum.1 + one.bytes);
        }
        let mut parts = HashMap::new();
        for (key, sum) in sums {
            let counted = self.counted_parts.get(&key).copied().unwrap_or(0.0);
            let found = self.take_from_unknown(key, (sum.0 * counted, sum.1 * counted));
            let part =
                |found: u64, sum: f64| 1.0 - counted + if sum > 0.0 { found as f64 / sum } else { 0.0 };
            parts.insert(key, (part(found.calls, sum.0), part(found.bytes, sum.1)));
        }
        let waits = self.waits_in_gaps();
        for &(index, one) in extrapolated {
            let stream = &mut self.streams.all[index];
            let part = parts.get(&(stream.pid, stream.direction)).copied().unwrap_or((1.0, 1.0));
            scaling::extrapolate(stream, one, part, waits);
            let key = (stream.pid, stream.image, stream.fd, stream.file, stream.direction);
            self.estimated_streams.insert(key);
        }
        self.streams.all.retain(|stream| stream.is_known() || stream.calls > 0);
    }

    /// Removes at most this many calls and bytes from a process's unknown streams. Returns how many were removed.
    fn take_from_unknown(&mut self, key: (u32, Direction), (calls, bytes): (f64, f64)) -> KernelTotal {
        let (mut found, wanted) = (
            KernelTotal::default(),
            KernelTotal { calls: calls.round() as u64, bytes: bytes.round() as u64 },
        );
        let all = self.streams.all.iter_mut();
        for stream in all.filter(|one| !one.is_known() && (one.pid, one.direction) == key) {
            let taken = KernelTotal {
                calls: (wanted.calls - found.calls).min(stream.calls),
                bytes: wanted.bytes.saturating_sub(found.bytes).min(stream.bytes),
            };
            if taken != KernelTotal::default() {
                // Without calls there are no bytes.
                let bytes = if taken.calls == stream.calls { stream.bytes } else { taken.bytes };
                scaling::remove_calls(stream, KernelTotal { bytes, ..taken });
                (found.calls, found.bytes) = (found.calls + taken.calls, found.bytes + bytes);
            }
        }
        found
    }

    /// Returns the PIDs of processes that were not observed for some of their time.
    pub(super) fn partly_observed(&self) -> HashSet<u32> {
        let none = Vec::new();
        let spans = |pid: u32| self.unobserved_spans.get(&pid).unwrap_or(&none).iter();
        let partly_observed = self.processes.iter().filter(|process| {
            let ended_s = process.ended_s.unwrap_or(f64::INFINITY);
            let within = |&&(from_s, to_s): &&(f64, f64)| {
                to_s > from_s && from_s < ended_s && process.started_s < to_s
            };
            spans(0).chain(spans(process.pid)).any(|span| within(&span))
        });
        partly_observed.map(|process| process.pid).collect()
    }
}

/// Sorts spans by time and removes their overlaps.
fn without_overlaps(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
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
    fn overlaps_count_once() {
        let spans = vec![(3.0, 5.0), (1.0, 2.0), (4.0, 6.0), (4.5, 4.5)];
        assert_eq!(without_overlaps(spans), [(1.0, 2.0), (3.0, 5.0), (5.0, 6.0), (6.0, 6.0)]);
    }
}
