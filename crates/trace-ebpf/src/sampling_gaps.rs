//! Sampling gaps: the program at system calls is detached and attached again, or a flag makes it return at once.
//!
//! At the start of a gap the backend takes all counts, so that a descriptor that is reused during the gap becomes
//! another stream. It reports the totals of processes at both ends, so that the recorder knows how much each process moved
//! during the gap.

use std::collections::HashSet;

use weir_model::trace::IoTotals;
use weir_sys::clock::now_ns;
use weir_trace_api::{RawEvent, RawEventKind};

use super::shared_types::StreamKey;
use super::{Run, decode};
use crate::overhead_budget::AT_ONCE_NS;

/// Processes whose totals are reported at a gap, out of those that were created, moved bytes or closed a stream since the last
/// gap. The limit bounds the time for reading /proc. The bytes of other processes cannot be attributed to streams later.
const MAX_REPORTED: usize = 48;

/// BPF_EXIST of bpf(2): updates an entry only if a program has not deleted it meanwhile.
const ONLY_IF_THERE: u64 = 2;

/// The processes to report at the next edge of a gap.
#[derive(Debug, Default)]
pub(super) struct SamplingGap {
    /// At the start of the present gap.
    reported: HashSet<u32>,
    /// Since the last gap began.
    created: HashSet<u32>,
    /// Closed a stream since the last gap began. A shell does so for each redirected command, and may have no stream
    /// when the next gap begins.
    closed: HashSet<u32>,
}

impl SamplingGap {
    pub fn process_created(&mut self, pid: u32) {
        self.created.insert(pid);
    }

    pub fn stream_closed(&mut self, pid: u32) {
        self.closed.insert(pid);
    }

    pub fn process_exited(&mut self, pid: u32) {
        self.created.remove(&pid);
        self.closed.remove(&pid);
        self.reported.remove(&pid);
    }
}

impl Run<'_> {
    /// Stops the program at system calls. `window_start` is the time at which the sampling window began.
    pub(super) fn begin_gap(&mut self, window_start: u64) {
        // Sent first, because a process may exit before the gap ends or before the ring buffer is empty.
        let kind = RawEventKind::Gap { until_ns: window_start };
        (self.sink)(RawEvent { ns: window_start, pid: 0, tid: 0, kind });
        self.backend.loaded.pause_calls();
        let gap_start = now_ns();
        self.drain();
        let mut active = self.take_counts();
        active.extend(std::mem::take(&mut self.gap.created));
        active.extend(std::mem::take(&mut self.gap.closed));
        self.gap.reported.clear();
        for pid in active.into_iter().take(MAX_REPORTED) {
            if self.report_gap_edge(gap_start, pid, false) {
                self.gap.reported.insert(pid);
            }
        }
    }

    /// Reports the end of the gap that began at `gap_start`, before the program is attached again. Returns the processes whose totals
    /// it has reported.
    pub(super) fn end_gap(&mut self, gap_start: u64) -> Vec<u32> {
        self.drain();
        let kind = RawEventKind::Gap { until_ns: now_ns() };
        (self.sink)(RawEvent { ns: gap_start, pid: 0, tid: 0, kind });
        let reported = std::mem::take(&mut self.gap.reported);
        // Processes that were created during the gap have no report of its start.
        let created = self.gap.created.drain().take(MAX_REPORTED);
        let processes: Vec<u32> = reported.into_iter().chain(created).collect();
        for &pid in &processes {
            self.report_gap_edge(now_ns(), pid, true);
        }
        processes
    }

    /// Attaches the program at system calls again. Reports the time that this takes as another gap. If the program cannot be attached,
    /// because weir has no free descriptor, another gap begins. `processes`: those of [`Self::end_gap`].
    pub(super) fn resume_sampling(&mut self, processes: Vec<u32>) {
        let start = now_ns();
        if let Err(error) = self.backend.loaded.reattach_calls() {
            self.unattached = Some(error);
            self.gap.created.extend(processes);
            self.budget.continue_gap(start);
            self.begin_gap(start);
            return;
        }
        let until_ns = now_ns();
        self.budget.attached(until_ns - start);
        if until_ns - start >= AT_ONCE_NS {
            (self.sink)(RawEvent { ns: start, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns } });
        }
    }

    /// Reports the present totals of a process, with the time of the gap's edge. Returns false if they are unknown.
    fn report_gap_edge(&mut self, ns: u64, pid: u32, ends: bool) -> bool {
        let Some(totals) = self.totals(pid) else { return false };
        let kind = RawEventKind::GapEdge { totals, ends };
        (self.sink)(RawEvent { ns, pid, tid: pid, kind });
        true
    }

    /// Returns the totals of a process: its threads in /proc plus the exited threads that the program on_exit has summed.
    /// None if they cannot be read, or could not when the process was first traced.
    pub(super) fn totals(&self, pid: u32) -> Option<IoTotals> {
        let state = self.backend.loaded.processes.get(&pid, 0).ok()?;
        let exited = IoTotals {
            read_calls: state.read_calls,
            write_calls: state.write_calls,
            read_bytes: state.read_bytes,
            written_bytes: state.written_bytes,
        };
        // For the command `exited` is negative (wrapped): it subtracts what the process read as a part of weir.
        let all = exited.plus(self.backend.first_totals.living(pid)?);
        Some(all.since(self.image_reads.of(pid)))
    }

    /// Sends the counters of all streams and resets them. Returns the processes that moved bytes.
    fn take_counts(&mut self) -> HashSet<u32> {
        let streams = &mut self.backend.loaded.streams;
        let keys: Vec<StreamKey> = streams.keys().flatten().collect();
        let mut active = HashSet::new();
        for key in keys {
            let Ok(counters) = streams.get(&key, 0) else { continue };
            if counters.stale != 0 && counters.wait_ns == 0 {
                continue;
            }
            // The update fails if the stream was closed meanwhile; the kernel has emitted its counters then.
            if streams.insert(key, counters.emptied(), ONLY_IF_THERE).is_ok() {
                active.insert(key.pid);
                decode::send_counters(&counters, now_ns(), self.sink);
            }
        }
        active
    }

    /// Sends and deletes the counters that the kernel has not emitted, of one process or of all.
    pub(super) fn sweep(&mut self, pid: Option<u32>) {
        let loaded = &mut self.backend.loaded;
        if !loaded.has_streams() {
            return;
        }
        let keys = loaded.streams.keys().flatten().filter(|key| pid.is_none_or(|pid| key.pid == pid));
        for key in keys.collect::<Vec<_>>() {
            if let Ok(counters) = loaded.streams.get(&key, 0) {
                decode::send_counters(&counters, now_ns(), self.sink);
            }
            loaded.delete_stream(key);
        }
    }
}
