//! Streams of a recording with their buffering mode and the cost of their calls.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::{
    Histogram, ObservedMode, OpenFile, Prices, Recording, StreamCounts, StreamModes, StreamSum, StreamTable,
    TracingCost, UNKNOWN,
};
use crate::{Direction, StreamKind, Untrusted};

/// A stream, its buffering mode and its cost.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct TraceStream<'a> {
    /// Name of the program.
    pub comm: &'a Untrusted,
    /// Path by which the program opened the file first.
    pub path: &'a Untrusted,
    /// Other paths by which any process of the run opened the same file.
    pub also: Vec<&'a Untrusted>,
    pub kind: StreamKind,
    /// Open files: indexes in [`Recording::files`], ascending.
    pub openings: Vec<u32>,
    /// Device and inode number, if known.
    pub inode: Option<(u64, u64)>,
    /// Sum of the counts of every open file.
    pub counts: Cow<'a, StreamCounts>,
    /// Buffering mode; `None` if unknown.
    pub mode: Option<ObservedMode>,
    /// Cost of the calls in seconds by this machine's prices, with the waits for the device. At most the CPU time
    /// and idle time of the process.
    pub cost_s: f64,
    /// Part of `cost_s` that is waiting for the device; measured if the backend can.
    pub waits_s: f64,
    /// `cost_s` as a share of the run, 0 to 1.
    pub share: f64,
}

/// Returns all streams by process, then in the order of their first use.
pub fn trace_streams<'a>(table: &StreamTable<'a>) -> Vec<TraceStream<'a>> {
    let recording = table.recording();
    let modes = recording.modes();
    let names = other_names(recording);
    let order: HashMap<u32, usize> =
        recording.processes.iter().enumerate().rev().map(|(at, process)| (process.pid, at)).collect();
    // Sorted before the conversion: a TraceStream is larger than a reference.
    let mut ordered: Vec<_> = table.all().iter().collect();
    ordered.sort_by_key(|stream| (order.get(&stream.sum.pid).copied(), stream.sum.pid));
    let mut streams: Vec<TraceStream> =
        ordered.into_iter().map(|stream| TraceStream::new(recording, &modes, &names, stream)).collect();
    bound_costs(recording, &mut streams);
    streams
}

/// Returns all paths of each file that the run opened by several, keyed by the id of its first opening.
fn other_names(recording: &Recording) -> HashMap<u32, BTreeSet<&Untrusted>> {
    let mut names: HashMap<u32, BTreeSet<&Untrusted>> = HashMap::new();
    for file in &recording.files {
        let Some(first) = recording.first_name(file.id).filter(|first| first.id != file.id) else { continue };
        names.entry(first.id).or_default().extend([&first.path, &file.path]);
    }
    names
}

impl<'a> TraceStream<'a> {
    fn new(
        recording: &'a Recording,
        modes: &StreamModes,
        names: &HashMap<u32, BTreeSet<&'a Untrusted>>,
        totals: &StreamSum<'a>,
    ) -> Self {
        let StreamSum { comm, openings, sum } = totals;
        let file = recording.file(sum.file);
        let path = file.map_or(&UNKNOWN, |file| &file.path);
        let all_names = recording.first_name(sum.file).and_then(|first| names.get(&first.id));
        let mut files: Vec<u32> = openings.iter().map(|counts| counts.file).collect();
        files.sort_unstable();
        files.dedup();
        let kind = file.map_or(StreamKind::Other, |file| file.kind);
        let waits_s =
            openings.iter().map(|counts| waits_s(recording, counts, recording.file(counts.file))).sum();
        let transfer_s =
            recording.prices.transfer_s(kind, sum.direction == Direction::Out, sum.calls, sum.bytes);
        Self {
            comm,
            path,
            also: all_names.into_iter().flatten().copied().filter(|name| *name != path).collect(),
            kind,
            openings: files,
            inode: file.filter(|file| file.ino != 0).map(|file| (file.dev, file.ino)),
            mode: mode_of_openings(modes, openings),
            counts: sum.clone(),
            cost_s: transfer_s + waits_s,
            waits_s,
            share: 0.0,
        }
    }

    /// Returns whether the program writes to the stream.
    pub fn writes(&self) -> bool {
        self.counts.direction == Direction::Out
    }

    /// Returns the typical bytes of a call: the mean if it lies in the same power of two as the median, otherwise the smallest
    /// size of the median's power of two. `None` if no call moved bytes.
    pub fn typical_bytes(&self) -> Option<u64> {
        self.typical().map(|(bytes, _)| bytes)
    }

    /// As [`TraceStream::typical_bytes`], with whether the median call may be larger: the size is the smallest of its power of two.
    pub fn typical(&self) -> Option<(u64, bool)> {
        let sizes = &self.counts.sizes;
        let zeros = sizes.0.first().copied().unwrap_or(0);
        let half = (sizes.total() - zeros).div_ceil(2);
        let mut below = 0;
        let slot = sizes.0.iter().skip(1).position(|count| {
            below += count;
            below >= half && half > 0
        })? + 1;
        let mean = self.counts.mean_bytes().round() as u64;
        let (is_near, least) = (Histogram::slot(mean) == slot, Histogram::floor(slot));
        // The slots of 0 and 1 have one size each.
        Some(if is_near { (mean, false) } else { (least, least > 1) })
    }
}

/// Scales costs down to what is possible: prices come from small runs, but the calls of a process cannot cost more
/// than its CPU time, nor its waits more than its idle time. Sets the shares.
fn bound_costs(recording: &Recording, streams: &mut [TraceStream]) {
    let run_s = (recording.elapsed_s - recording.overhead.cost_s.max(0.0)).max(recording.elapsed_s / 10.0);
    let (tracing, processes) = (TracingCost::new(recording), recording.processes_by_pid());
    let mut by_process: HashMap<u32, Vec<&mut TraceStream>> = HashMap::new();
    streams.iter_mut().for_each(|stream| by_process.entry(stream.counts.pid).or_default().push(stream));
    for (pid, own) in &mut by_process {
        let Some(process) = processes.get(pid) else { continue };
        let calls_s: f64 = own.iter().map(|stream| stream.cost_s - stream.waits_s).sum();
        let waits_s: f64 = own.iter().map(|stream| stream.waits_s).sum();
        let cpu_s = process.user_s + process.system_s;
        let idle_s = (process.ended_s.unwrap_or(recording.elapsed_s) - process.started_s - cpu_s).max(0.0);
        let number = own.iter().map(|stream| stream.counts.calls).sum();
        let calls = Prices::scale(calls_s, tracing.system_s(process), number);
        let calls = if cpu_s > 0.0 && calls_s > 0.0 { calls.min(cpu_s / calls_s) } else { calls };
        let waits = idle_s / waits_s.max(idle_s).max(f64::MIN_POSITIVE);
        for stream in own {
            stream.cost_s = (stream.cost_s - stream.waits_s) * calls + stream.waits_s * waits;
            stream.waits_s *= waits;
        }
    }
    for stream in streams {
        stream.share = if run_s > 0.0 { (stream.cost_s / run_s).clamp(0.0, 1.0) } else { 0.0 };
    }
}

/// Returns the seconds for which sync calls and writes to a file wait for the device: the measured ones, else those by the
/// price of a sync.
fn waits_s(recording: &Recording, counts: &StreamCounts, file: Option<&OpenFile>) -> f64 {
    if counts.direction != Direction::Out {
        return 0.0;
    }
    let sync_s = recording.prices.sync_ns / 1e9;
    let is_file = || file.is_some_and(|file| file.kind == StreamKind::File);
    let in_writes_s = match counts.wait_s {
        Some(wait_s) if is_file() => wait_s,
        None if file.is_some_and(OpenFile::waits_for_device) => counts.calls as f64 * sync_s,
        _ => 0.0,
    };
    counts.syncs_s(sync_s) + in_writes_s
}

/// Returns the mode of the opening with the most calls among those with a known mode; the first of equals.
fn mode_of_openings(modes: &StreamModes, openings: &[&StreamCounts]) -> Option<ObservedMode> {
    let known = openings.iter().filter_map(|counts| Some((counts.calls, modes.of(counts)?)));
    known.reduce(|most, next| if next.0 > most.0 { next } else { most }).map(|(_, mode)| mode)
}
