//! Scales streams that were observed in part, so that the calls and bytes of a process equal the kernel's exact
//! totals (/proc/PID/io). The recorder does this once, when a process exits or the recording ends.

use weir_model::trace::{Histogram, StreamCounts};

use crate::gap_attribution::CallsAndBytes;

/// Calls and bytes of a process in one direction, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KernelTotal {
    pub calls: u64,
    pub bytes: u64,
}

/// The observed calls and bytes of a process in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ObservedPart {
    /// Calls that are in the kernel's total.
    pub counted: KernelTotal,
    /// Calls of which only some are in the kernel's total: those on sockets, and those that copy within the
    /// kernel.
    pub perhaps: KernelTotal,
}

/// Totals are read shortly before or after a gap's edge. A remainder up to this part of all, or up to these few
/// calls and bytes, is attributed to that.
const EDGES: f64 = 16.0;
const EDGE_CALLS: f64 = 8.0;
const EDGE_BYTES: f64 = 512.0;

/// Returns the calls and bytes that were not observed, by stream: those of its gaps (`shares`; None is an
/// unknown stream) scaled to the kernel's total. What exceeds the gaps is of unknown streams too.
pub(super) fn missing_by_stream<K: Copy>(
    total: KernelTotal,
    observed: ObservedPart,
    shares: &[(Option<K>, CallsAndBytes)],
) -> Vec<(Option<K>, KernelTotal)> {
    let mut sum = CallsAndBytes::default();
    shares.iter().for_each(|share| sum.add(share.1));
    let unobserved = |total: u64, counted: u64, perhaps: u64, known: f64| {
        let most = total.saturating_sub(counted);
        (known.round() as u64).clamp(most.saturating_sub(perhaps), most)
    };
    let calls = unobserved(total.calls, observed.counted.calls, observed.perhaps.calls, sum.calls);
    let bytes = unobserved(total.bytes, observed.counted.bytes, observed.perhaps.bytes, sum.bytes);
    let mut all: Vec<(Option<K>, CallsAndBytes)> =
        shares.iter().filter(|share| share.0.is_some()).copied().collect();
    let unknown =
        shares.iter().filter(|share| share.0.is_none()).fold(CallsAndBytes::default(), |mut sum, share| {
            sum.add(share.1);
            sum
        });
    // A small remainder belongs to the known streams, unless unknown streams have a share anyway.
    let beyond = |of: u64, known: f64, few: f64, unknown: f64| {
        let more = of as f64 - known;
        let others = known <= 0.0 || unknown > 0.0 || more > (of as f64 / EDGES).max(few);
        if others { more.max(0.0) } else { 0.0 }
    };
    let beyond = CallsAndBytes {
        calls: beyond(calls, sum.calls, EDGE_CALLS, unknown.calls),
        bytes: beyond(bytes, sum.bytes, EDGE_BYTES, unknown.bytes),
    };
    all.push((
        None,
        CallsAndBytes { calls: unknown.calls + beyond.calls, bytes: unknown.bytes + beyond.bytes },
    ));
    let part = |of: u64, amount: fn(&CallsAndBytes) -> f64| {
        whole_numbers(of, &all.iter().map(|one| amount(&one.1)).collect::<Vec<_>>())
    };
    let (mut calls, bytes) = (part(calls, |one| one.calls), part(bytes, |one| one.bytes));
    for index in 0..calls.len() {
        // A stream with bytes has at least one call.
        if bytes[index] == 0 || calls[index] > 0 {
            continue;
        }
        let most = (0..calls.len()).max_by_key(|other| calls[*other]).filter(|most| calls[*most] > 1);
        if let Some(most) = most {
            calls[most] -= 1;
            calls[index] = 1;
        }
    }
    let each = all.iter().zip(calls.into_iter().zip(bytes));
    each.map(|(one, (calls, bytes))| (one.0, KernelTotal { calls, bytes })).collect()
}

/// Returns the part (0 to 1) of the `perhaps` calls that the kernel's total contains. `in_gaps` is the number of calls
/// in the total that were made in gaps. write(2) to a socket is in the total, send(2) is not.
pub(super) fn counted_part(total: u64, observed: ObservedPart, in_gaps: f64) -> f64 {
    let in_windows = total as f64 - in_gaps - observed.counted.calls as f64;
    (in_windows / observed.perhaps.calls.max(1) as f64).clamp(0.0, 1.0)
}

/// Removes calls of a stream that are attributed to another one.
pub(super) fn remove_calls(stream: &mut StreamCounts, removed: KernelTotal) {
    let rest = stream.calls.saturating_sub(removed.calls);
    let part = rest as f64 / stream.calls.max(1) as f64;
    let scaled = |of: &Histogram| Histogram(of.0.iter().map(|&n| (n as f64 * part).round() as u64).collect());
    (stream.sizes, stream.requested_sizes) = (scaled(&stream.sizes), scaled(&stream.requested_sizes));
    (stream.calls, stream.bytes) = (rest, stream.bytes.saturating_sub(removed.bytes));
    stream.estimated = true;
}

/// Splits `whole` by these weights into whole numbers. If all weights are 0, the last part gets all.
fn whole_numbers(whole: u64, weights: &[f64]) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let share = |weight: &f64| if sum > 0.0 { (whole as f64 * weight / sum) as u64 } else { 0 };
    let mut shares: Vec<u64> = weights.iter().map(share).collect();
    // The largest part gets the rounding remainder.
    let largest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap_or(0);
    let mut given: u64 = shares.iter().sum();
    if let Some(share) = shares.get_mut(largest) {
        if given > whole {
            *share -= (given - whole).min(*share);
            given = whole;
        }
        *share += whole - given;
    }
    shares
}

/// A stream is busy at the start of a gap if its last call is at most this long before it, in seconds.
const NEXT_CALL_S: f64 = 0.002;
/// Fewer calls give no reliable rate.
const MIN_CALLS: u64 = 100;

/// Returns the estimated time of a stream's last call, in seconds: a stream that was busy when a gap began
/// (`gaps`, sorted by time) continues to the gap's end or the process's exit.
pub(super) fn estimated_last_s(stream: &StreamCounts, gaps: &[(f64, f64)], ended_s: f64) -> f64 {
    let gap = |&&(from_s, to_s): &&(f64, f64)| from_s <= stream.last_s + NEXT_CALL_S && to_s > stream.last_s;
    let gap = gaps.iter().find(gap).filter(|_| stream.calls >= MIN_CALLS);
    gap.map_or(stream.last_s, |&(_, to_s)| to_s.min(ended_s).max(stream.last_s))
}

/// The calls of a socket in gaps at the rate that was observed, and the estimated time of its last call in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extrapolation {
    pub calls: f64,
    pub bytes: f64,
    pub last_s: f64,
}

/// Returns a socket's calls in the gaps (`gaps`, sorted by time): the kernel's totals contain only some of them, and do
/// not show which. Returns none if its rate is unknown. `ended_s` is the time of the process's exit.
pub(super) fn extrapolation(
    stream: &StreamCounts,
    gaps: &[(f64, f64)],
    ended_s: f64,
) -> Option<Extrapolation> {
    if stream.calls < MIN_CALLS {
        return None;
    }
    let (first_s, last_s) = (stream.first_s, estimated_last_s(stream, gaps, ended_s));
    let overlap = |&(from_s, to_s): &(f64, f64)| (to_s.min(last_s) - from_s.max(first_s)).max(0.0);
    let missed_s: f64 = gaps.iter().map(overlap).sum();
    let seen_s = last_s - first_s - missed_s;
    let more = |count: u64| count as f64 * missed_s / seen_s;
    let all = Extrapolation { calls: more(stream.calls), bytes: more(stream.bytes), last_s };
    (missed_s > 0.0 && seen_s > 0.0).then_some(all)
}

/// Adds a part (0 to 1) of the extrapolated calls and bytes. For `waits` see [`add_unobserved`].
pub(super) fn extrapolate(
    stream: &mut StreamCounts,
    all: Extrapolation,
    (calls, bytes): (f64, f64),
    waits: WaitsInGaps,
) {
    add_unobserved(stream, (all.calls * calls).round() as u64, (all.bytes * bytes).round() as u64, waits);
    stream.estimated |= !stream.exact;
    stream.last_s = all.last_s;
}

/// Whether a backend measures in gaps too for how long calls block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsInGaps {
    Measured,
    /// Only in sampling windows, so that the waits of the other calls are extrapolated.
    NotMeasured,
}

/// Adds calls that were not observed. Their sizes, results and waits are distributed as those of the observed calls.
pub(super) fn add_unobserved(stream: &mut StreamCounts, calls: u64, bytes: u64, waits: WaitsInGaps) {
    if calls == 0 && bytes == 0 {
        return;
    }
    let factor = (stream.calls + calls) as f64 / stream.calls.max(1) as f64;
    let scaled = |count: u64| (count as f64 * factor).round() as u64;
    let histogram = |of: &Histogram| Histogram(of.0.iter().map(|&count| scaled(count)).collect());
    stream.sizes = histogram(&stream.sizes);
    stream.requested_sizes = histogram(&stream.requested_sizes);
    stream.zeros = scaled(stream.zeros);
    stream.short = scaled(stream.short);
    stream.errors = scaled(stream.errors);
    stream.again = scaled(stream.again);
    stream.newline_ends = scaled(stream.newline_ends);
    stream.unaligned = scaled(stream.unaligned);
    stream.jumps = scaled(stream.jumps);
    // Bytes that were read or written for the first time stay so.
    let first_bytes = stream.bytes.saturating_sub(stream.again_bytes);
    stream.again_bytes = scaled(stream.again_bytes).min((stream.bytes + bytes).saturating_sub(first_bytes));
    stream.in_kernel = scaled(stream.in_kernel);
    stream.seeks = scaled(stream.seeks);
    stream.syncs = scaled(stream.syncs);
    if waits == WaitsInGaps::NotMeasured {
        stream.wait_s = stream.wait_s.map(|seconds| seconds * factor);
    }
    stream.calls += calls;
    stream.bytes += bytes;
    stream.exact = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::Direction;

    #[test]
    fn missing_calls_are_shared_and_the_sum_is_exact() {
        let total = KernelTotal { calls: 1_000_000, bytes: 999_999 };
        let observed =
            ObservedPart { counted: KernelTotal { calls: 100, bytes: 100 }, perhaps: KernelTotal::default() };
        let amount = |calls, bytes| CallsAndBytes { calls, bytes };
        // The total has a few calls more than the gaps, because it is read at another time.
        let shares = [(Some('a'), amount(333_333.3, 333_333.3)), (Some('b'), amount(666_000.0, 666_000.0))];
        let given = missing_by_stream(total, observed, &shares);
        assert_eq!(given.iter().map(|one| one.1.calls).sum::<u64>(), 999_900);
        assert_eq!(given.iter().map(|one| one.1.bytes).sum::<u64>(), 999_899);
        assert_eq!(given[2], (None, KernelTotal::default()));
        // Most calls are in no gap.
        let given = missing_by_stream(total, observed, &[(Some('a'), amount(1000.0, 1000.0))]);
        assert_eq!(
            given,
            [
                (Some('a'), KernelTotal { calls: 1000, bytes: 1000 }),
                (None, KernelTotal { calls: 998_900, bytes: 998_899 })
            ]
        );
        let given = missing_by_stream::<char>(total, observed, &[]);
        assert_eq!(given, [(None, KernelTotal { calls: 999_900, bytes: 999_899 })]);
    }

    #[test]
    fn a_share_known_by_position_is_not_scaled_beside_an_unknown_one() {
        let total = KernelTotal { calls: 103_000, bytes: 103_000 };
        let amount = |calls, bytes| CallsAndBytes { calls, bytes };
        let shares = [(Some('a'), amount(85.0, 85.0)), (None, amount(99_915.0, 99_915.0))];
        let given = missing_by_stream(total, ObservedPart::default(), &shares);
        assert_eq!(given[0], (Some('a'), KernelTotal { calls: 85, bytes: 85 }));
        assert_eq!(given[1], (None, KernelTotal { calls: 102_915, bytes: 102_915 }));
    }

    #[test]
    fn the_kernel_counts_the_calls_that_it_counts_in_windows() {
        let sum = |calls| KernelTotal { calls, bytes: calls };
        let observed = ObservedPart { counted: sum(100), perhaps: sum(1000) };
        // write(2), send(2), and half of each, beside 5000 calls in gaps.
        assert_eq!(counted_part(6100, observed, 5000.0), 1.0);
        assert_eq!(counted_part(5100, observed, 5000.0), 0.0);
        assert_eq!(counted_part(5600, observed, 5000.0), 0.5);
    }

    #[test]
    fn calls_that_the_kernel_does_not_count_are_not_missing() {
        let observed = ObservedPart {
            counted: KernelTotal { calls: 10, bytes: 10 },
            perhaps: KernelTotal { calls: 50, bytes: 50 },
        };
        let given = missing_by_stream::<char>(KernelTotal { calls: 40, bytes: 40 }, observed, &[]);
        assert_eq!(given, [(None, KernelTotal::default())]);
        let known = [(Some('a'), CallsAndBytes { calls: 20.0, bytes: 20.0 })];
        let given = missing_by_stream(KernelTotal { calls: 40, bytes: 40 }, observed, &known);
        assert_eq!(given[0].1, KernelTotal { calls: 20, bytes: 20 });
    }

    #[test]
    fn kinds_of_calls_keep_their_share() {
        let mut stream = StreamCounts {
            calls: 100,
            bytes: 100,
            zeros: 50,
            ..StreamCounts::new(1, 0, 0, 0, Direction::In)
        };
        stream.sizes.add(1, 100);
        stream.wait_s = Some(0.5);
        add_unobserved(&mut stream, 900, 900, WaitsInGaps::NotMeasured);
        assert_eq!(
            (stream.calls, stream.bytes, stream.zeros, stream.sizes.total(), stream.exact),
            (1000, 1000, 500, 1000, false)
        );
        assert_eq!(stream.wait_s, Some(5.0));
        add_unobserved(&mut stream, 1000, 1000, WaitsInGaps::Measured);
        assert_eq!((stream.calls, stream.wait_s), (2000, Some(5.0)));
    }

    /// A shell that seeks back after each line reads larger blocks in the windows than in the gaps.
    #[test]
    fn bytes_read_again_are_no_more_than_the_bytes_read() {
        let observed = || StreamCounts {
            calls: 700,
            bytes: 2_867_200,
            again_bytes: 2_850_000,
            ..StreamCounts::new(1, 0, 0, 0, Direction::In)
        };
        let mut stream = observed();
        add_unobserved(&mut stream, 29_300, 116_000_000, WaitsInGaps::Measured);
        assert_eq!((stream.bytes, stream.again_bytes), (118_867_200, 118_850_000));
        let mut alike = observed();
        add_unobserved(&mut alike, 700, 2_867_200, WaitsInGaps::Measured);
        assert_eq!(alike.again_bytes, 5_700_000);
    }

    #[test]
    fn a_socket_continues_in_a_gap() {
        let stream = || StreamCounts {
            calls: 1000,
            bytes: 2000,
            last_s: 0.2,
            ..StreamCounts::new(1, 0, 3, 0, Direction::Out)
        };
        // Observed for 0.1 s: from 0 to 0.05 and from 0.15 to 0.2.
        let extrapolate = |stream: &mut StreamCounts, gaps: &[(f64, f64)], ended_s: f64| {
            if let Some(all) = extrapolation(stream, gaps, ended_s) {
                super::extrapolate(stream, all, (1.0, 1.0), WaitsInGaps::Measured);
            }
        };
        let mut within = stream();
        extrapolate(&mut within, &[(0.05, 0.15), (0.5, 0.9)], 1.0);
        assert_eq!((within.calls, within.bytes, within.exact), (2000, 4000, false));
        assert!(within.estimated, "no total contains them");
        let mut to_the_end = stream();
        extrapolate(&mut to_the_end, &[(0.2, 0.9)], 0.4);
        assert_eq!((to_the_end.calls, to_the_end.last_s), (2000, 0.4));
        let mut observed = stream();
        extrapolate(&mut observed, &[(0.5, 0.9)], 1.0);
        assert_eq!((observed.calls, observed.exact), (1000, true));
    }

    #[test]
    fn the_last_call_may_be_in_a_gap() {
        let stream =
            StreamCounts { calls: 1000, last_s: 0.02, ..StreamCounts::new(1, 0, 1, 0, Direction::Out) };
        let gap = [(0.02, 0.02), (0.021, 0.4)];
        assert_eq!(estimated_last_s(&stream, &gap, 0.3), 0.3, "the process exits in the gap");
        assert_eq!(estimated_last_s(&stream, &gap, 0.9), 0.4);
        assert_eq!(estimated_last_s(&stream, &gap, 0.01), 0.02, "not before an observed call");
        assert_eq!(estimated_last_s(&stream, &[(0.05, 0.4)], 0.9), 0.02, "idle before the gap");
        assert_eq!(
            estimated_last_s(&StreamCounts { calls: 10, ..stream }, &gap, 0.9),
            0.02,
            "too few calls for a rate"
        );
    }

    #[test]
    fn nothing_is_added_where_all_calls_were_observed() {
        let sum = KernelTotal { calls: 5, bytes: 50 };
        let given = missing_by_stream::<char>(
            sum,
            ObservedPart { counted: sum, perhaps: KernelTotal::default() },
            &[],
        );
        assert_eq!(given, [(None, KernelTotal::default())]);
        let mut stream = StreamCounts::new(1, 0, 0, 0, Direction::In);
        (stream.calls, stream.bytes) = (5, 50);
        add_unobserved(&mut stream, 0, 0, WaitsInGaps::NotMeasured);
        assert_eq!((stream.calls, stream.bytes, stream.exact), (5, 50, true));
    }
}
