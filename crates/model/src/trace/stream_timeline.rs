//! The streams of a recording over time (`timeline` of schema weir-trace/1).

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use serde::{Deserialize, Serialize};

use super::{EventKind, Recording, TraceStream};
use crate::Direction;

/// Largest number of bins of a stream: about one for each pixel of a wide screen.
const MAX_BINS: usize = 2000;
/// Largest number of streams with a timeline. The streams with the most calls are chosen; a page cannot show more lanes.
const MAX_STREAMS: usize = 500;

/// One stream over time. The recording has the time of some calls only (of a busy stream the first and the last ones), so
/// the bins are a lower bound; the stream's row has the totals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamTimeline {
    /// Index in the document's `streams`.
    pub stream: usize,
    /// Time of the first call.
    pub first_s: f64,
    /// Time of the last call.
    pub last_s: f64,
    /// Width of a bin; bins start at 0.
    pub bin_s: f64,
    /// Bins with calls or a buffer snapshot, by time.
    pub bins: Vec<TimelineBin>,
}

/// The recorded calls of a stream in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineBin {
    /// Number of the bin, from 0.
    pub bin: usize,
    /// Calls with a recorded time in the bin, failed ones included.
    pub calls: u64,
    /// Bytes that these calls moved.
    pub bytes: u64,
    /// Largest number of pending bytes in a buffer snapshot; `None` without a snapshot.
    pub pending: Option<u64>,
    /// A gap covers a part of the bin: of its calls only totals are known.
    pub gap: bool,
}

/// Identifies a stream in events: PID, descriptor, open file, whether the program writes.
type StreamKey = (u32, i32, u32, bool);

/// Returns the timelines of the streams with the most calls, in the order of `streams`.
pub fn stream_timelines(recording: &Recording, streams: &[TraceStream]) -> Vec<StreamTimeline> {
    let chosen = chosen(streams);
    let mut lanes: HashMap<StreamKey, usize> = HashMap::new();
    for (lane, &stream) in chosen.iter().enumerate() {
        let one = &streams[stream];
        for &file in &one.openings {
            lanes.insert((one.counts.pid, one.counts.fd, file, one.counts.direction == Direction::Out), lane);
        }
    }
    let bin_s = bin_s(recording);
    let mut bins: Vec<BTreeMap<usize, TimelineBin>> = vec![BTreeMap::new(); chosen.len()];
    let bin_at = |at_s: f64| ((at_s / bin_s).max(0.0) as usize).min(MAX_BINS - 1);
    for event in &recording.events {
        let bin = bin_at(event.at_s);
        let mut at = |key: StreamKey, change: &dyn Fn(&mut TimelineBin)| {
            let Some(&lane) = lanes.get(&key) else { return };
            change(bins[lane].entry(bin).or_insert(TimelineBin { bin, ..TimelineBin::default() }));
        };
        match &event.kind {
            EventKind::Call(call) if call.op.reads() || call.op.writes() => {
                let Some(file) = call.file else { continue };
                at((event.pid, call.fd, file, call.op.writes()), &|bin| {
                    bin.calls += 1;
                    bin.bytes += u64::try_from(call.result).unwrap_or(0);
                });
            }
            EventKind::Buffers { buffers, files, .. } => {
                for buffer in buffers.iter().filter(|buffer| buffer.fd >= 0) {
                    let Some((_, file)) = files.iter().find(|(fd, _)| *fd == buffer.fd) else { continue };
                    at((event.pid, buffer.fd, *file, true), &|bin| {
                        bin.pending = bin.pending.max(Some(buffer.pending_bytes));
                    });
                }
            }
            _ => {}
        }
    }
    let gaps = gaps(recording);
    let timeline = |(bins, &stream): (BTreeMap<usize, TimelineBin>, &usize)| {
        let counts = &streams[stream].counts;
        let own = gaps.get(&counts.pid).map_or(&[][..], Vec::as_slice);
        let in_gap = |bin: usize| {
            let (from, to) = (bin as f64 * bin_s, (bin + 1) as f64 * bin_s);
            own.iter().any(|[start, end]| *start < to && *end > from)
        };
        let bins = bins.into_values().map(|one| TimelineBin { gap: in_gap(one.bin), ..one }).collect();
        StreamTimeline { stream, first_s: counts.first_s, last_s: counts.last_s, bin_s, bins }
    };
    bins.into_iter().zip(&chosen).map(timeline).collect()
}

/// Returns the indexes of the streams with the most calls, ascending.
fn chosen(streams: &[TraceStream]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..streams.len()).filter(|&at| streams[at].counts.is_known()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(streams[at].counts.calls));
    order.truncate(MAX_STREAMS);
    order.sort_unstable();
    order
}

/// Returns the width of a bin: a part of the recording, but not less than a microsecond.
fn bin_s(recording: &Recording) -> f64 {
    let last_s = recording.events.iter().map(|event| event.at_s).fold(recording.elapsed_s, f64::max);
    (last_s / MAX_BINS as f64).max(1e-6)
}

/// Returns the gaps by process.
fn gaps(recording: &Recording) -> HashMap<u32, Vec<[f64; 2]>> {
    let mut gaps: HashMap<u32, Vec<[f64; 2]>> = HashMap::new();
    for event in &recording.events {
        if let EventKind::Gap { until_s } = event.kind {
            gaps.entry(event.pid).or_default().push([event.at_s, until_s]);
        }
    }
    gaps
}
