//! Makes flows that were seen in part agree with the kernel's exact totals.

use weir_model::trace::{Histogram, StreamCounts};

use crate::gap_attribution::CallsAndBytes;

/// What a process moved in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KernelTotal {
    pub calls: u64,
    pub bytes: u64,
}

/// What was seen of a process, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ObservedPart {
    /// Calls that the kernel counts.
    pub counted: KernelTotal,
    /// Calls of which the kernel counts some and others not: a socket's, and those that move bytes inside of it.
    pub perhaps: KernelTotal,
}

/// Totals are read a moment before or after a pause begins or ends: what is neither seen nor in a pause is that if it is
/// no more than this part of all, or these few.
const EDGES: f64 = 16.0;
const EDGE_CALLS: f64 = 8.0;
const EDGE_BYTES: f64 = 512.0;

/// The calls and bytes of a process that nobody saw: those of its pauses (`shares`; None: through an unknown stream), made
/// to agree with the kernel's total. What is in none of them is unknown too.
pub(super) fn unseen<K: Copy>(
    total: KernelTotal,
    seen: ObservedPart,
    shares: &[(Option<K>, CallsAndBytes)],
) -> Vec<(Option<K>, KernelTotal)> {
    let mut sum = CallsAndBytes::default();
    shares.iter().for_each(|share| sum.add(share.1));
    let missing = |total: u64, counted: u64, perhaps: u64, known: f64| {
        let most = total.saturating_sub(counted);
        (known.round() as u64).clamp(most.saturating_sub(perhaps), most)
    };
    let calls = missing(total.calls, seen.counted.calls, seen.perhaps.calls, sum.calls);
    let bytes = missing(total.bytes, seen.counted.bytes, seen.perhaps.bytes, sum.bytes);
    let mut all: Vec<(Option<K>, CallsAndBytes)> =
        shares.iter().filter(|share| share.0.is_some()).copied().collect();
    let unknown =
        shares.iter().filter(|share| share.0.is_none()).fold(CallsAndBytes::default(), |mut sum, share| {
            sum.add(share.1);
            sum
        });
    // What is a little more is of the streams that are known, unless some went through others in any case.
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
        // Bytes came by a call.
        let most = (0..calls.len()).max_by_key(|other| calls[*other]).filter(|most| calls[*most] > 1);
        if let Some(most) = most.filter(|_| bytes[index] > 0 && calls[index] == 0) {
            calls[most] -= 1;
            calls[index] = 1;
        }
    }
    let each = all.iter().zip(calls.into_iter().zip(bytes));
    each.map(|(one, (calls, bytes))| (one.0, KernelTotal { calls, bytes })).collect()
}

/// `whole` in the shares of these weights; all of it goes to the last where they weigh nothing.
fn whole_numbers(whole: u64, weights: &[f64]) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let share = |weight: &f64| if sum > 0.0 { (whole as f64 * weight / sum) as u64 } else { 0 };
    let mut shares: Vec<u64> = weights.iter().map(share).collect();
    // What rounding leaves goes where most is.
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

/// A flow that was busy until the look away began goes on in it.
const NEXT_CALL_S: f64 = 0.002;
/// Fewer calls say nothing of a rate.
const LEAST_CALLS: u64 = 100;

/// When the last call of a flow was, that made some unseen: one that was busy until a look away (`unwatched`, in order
/// of time) began went on to its end, or the flow's own.
pub(super) fn last_s(flow: &StreamCounts, unwatched: &[(f64, f64)], ended_s: f64) -> f64 {
    let away = |&&(from_s, to_s): &&(f64, f64)| from_s <= flow.last_s + NEXT_CALL_S && to_s > flow.last_s;
    let away = unwatched.iter().find(away).filter(|_| flow.calls >= LEAST_CALLS);
    away.map_or(flow.last_s, |&(_, to_s)| to_s.min(ended_s).max(flow.last_s))
}

/// Calls on sockets are in no totals: while nobody looked (`unwatched`, in order of time) they went on as they
/// were seen to go. `ended` is when the flow's process was gone.
pub(super) fn to_time(flow: &mut StreamCounts, unwatched: &[(f64, f64)], ended_s: f64) {
    if flow.calls < LEAST_CALLS {
        return;
    }
    let (first_s, last_s) = (flow.first_s, last_s(flow, unwatched, ended_s));
    let overlap = |&(from_s, to_s): &(f64, f64)| (to_s.min(last_s) - from_s.max(first_s)).max(0.0);
    let missed_s: f64 = unwatched.iter().map(overlap).sum();
    let seen_s = last_s - first_s - missed_s;
    if missed_s <= 0.0 || seen_s <= 0.0 {
        return;
    }
    let more = |count: u64| (count as f64 * missed_s / seen_s).round() as u64;
    grow(flow, more(flow.calls), more(flow.bytes));
    flow.estimated |= !flow.exact;
    flow.last_s = last_s;
}

/// Calls of which nothing but their number is known: they were as those that were seen.
pub(super) fn grow(flow: &mut StreamCounts, calls: u64, bytes: u64) {
    if calls == 0 && bytes == 0 {
        return;
    }
    let factor = (flow.calls + calls) as f64 / flow.calls.max(1) as f64;
    let scaled = |count: u64| (count as f64 * factor).round() as u64;
    let histogram = |of: &Histogram| Histogram(of.0.iter().map(|&count| scaled(count)).collect());
    flow.sizes = histogram(&flow.sizes);
    flow.asked = histogram(&flow.asked);
    flow.zeros = scaled(flow.zeros);
    flow.short = scaled(flow.short);
    flow.errors = scaled(flow.errors);
    flow.again = scaled(flow.again);
    flow.newline_ends = scaled(flow.newline_ends);
    flow.unaligned = scaled(flow.unaligned);
    flow.jumps = scaled(flow.jumps);
    flow.again_bytes = scaled(flow.again_bytes);
    flow.in_kernel = scaled(flow.in_kernel);
    flow.seeks = scaled(flow.seeks);
    flow.syncs = scaled(flow.syncs);
    flow.calls += calls;
    flow.bytes += bytes;
    flow.exact = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::Direction;

    #[test]
    fn what_was_not_seen_goes_where_it_is_known_to_have_gone_and_the_sum_is_exact() {
        let total = KernelTotal { calls: 1_000_000, bytes: 999_999 };
        let seen =
            ObservedPart { counted: KernelTotal { calls: 100, bytes: 100 }, perhaps: KernelTotal::default() };
        let amount = |calls, bytes| CallsAndBytes { calls, bytes };
        // A few more than in the pauses: read at another moment.
        let shares = [(Some('a'), amount(333_333.3, 333_333.3)), (Some('b'), amount(666_000.0, 666_000.0))];
        let given = unseen(total, seen, &shares);
        assert_eq!(given.iter().map(|one| one.1.calls).sum::<u64>(), 999_900);
        assert_eq!(given.iter().map(|one| one.1.bytes).sum::<u64>(), 999_899);
        assert_eq!(given[2], (None, KernelTotal::default()));
        // Most of it was in no pause that was looked at.
        let given = unseen(total, seen, &[(Some('a'), amount(1000.0, 1000.0))]);
        assert_eq!(
            given,
            [
                (Some('a'), KernelTotal { calls: 1000, bytes: 1000 }),
                (None, KernelTotal { calls: 998_900, bytes: 998_899 })
            ]
        );
        let given = unseen::<char>(total, seen, &[]);
        assert_eq!(given, [(None, KernelTotal { calls: 999_900, bytes: 999_899 })]);
    }

    #[test]
    fn what_is_known_by_its_position_is_not_stretched_beside_what_is_not_known() {
        let total = KernelTotal { calls: 103_000, bytes: 103_000 };
        let amount = |calls, bytes| CallsAndBytes { calls, bytes };
        let shares = [(Some('a'), amount(85.0, 85.0)), (None, amount(99_915.0, 99_915.0))];
        let given = unseen(total, ObservedPart::default(), &shares);
        assert_eq!(given[0], (Some('a'), KernelTotal { calls: 85, bytes: 85 }));
        assert_eq!(given[1], (None, KernelTotal { calls: 102_915, bytes: 102_915 }));
    }

    #[test]
    fn calls_that_the_kernel_does_not_count_are_not_missing() {
        let seen = ObservedPart {
            counted: KernelTotal { calls: 10, bytes: 10 },
            perhaps: KernelTotal { calls: 50, bytes: 50 },
        };
        let given = unseen::<char>(KernelTotal { calls: 40, bytes: 40 }, seen, &[]);
        assert_eq!(given, [(None, KernelTotal::default())]);
        let known = [(Some('a'), CallsAndBytes { calls: 20.0, bytes: 20.0 })];
        let given = unseen(KernelTotal { calls: 40, bytes: 40 }, seen, &known);
        assert_eq!(given[0].1, KernelTotal { calls: 20, bytes: 20 });
    }

    #[test]
    fn kinds_of_calls_keep_their_share() {
        let mut flow = StreamCounts {
            calls: 100,
            bytes: 100,
            zeros: 50,
            ..StreamCounts::new(1, 0, 0, 0, Direction::In)
        };
        flow.sizes.add(1, 100);
        grow(&mut flow, 900, 900);
        assert_eq!(
            (flow.calls, flow.bytes, flow.zeros, flow.sizes.total(), flow.exact),
            (1000, 1000, 500, 1000, false)
        );
    }

    #[test]
    fn a_socket_goes_on_while_nobody_looks() {
        let flow = || StreamCounts {
            calls: 1000,
            bytes: 2000,
            last_s: 0.2,
            ..StreamCounts::new(1, 0, 3, 0, Direction::Out)
        };
        // Seen for a tenth of a second, from 0 to 0.05 and from 0.15 to 0.2.
        let mut between = flow();
        to_time(&mut between, &[(0.05, 0.15), (0.5, 0.9)], 1.0);
        assert_eq!((between.calls, between.bytes, between.exact), (2000, 4000, false));
        assert!(between.estimated, "no total has them");
        let mut to_the_end = flow();
        to_time(&mut to_the_end, &[(0.2, 0.9)], 0.4);
        assert_eq!((to_the_end.calls, to_the_end.last_s), (2000, 0.4));
        let mut seen = flow();
        to_time(&mut seen, &[(0.5, 0.9)], 1.0);
        assert_eq!((seen.calls, seen.exact), (1000, true));
    }

    #[test]
    fn the_last_call_may_be_one_that_nobody_saw() {
        let flow =
            StreamCounts { calls: 1000, last_s: 0.02, ..StreamCounts::new(1, 0, 1, 0, Direction::Out) };
        let away = [(0.02, 0.02), (0.021, 0.4)];
        assert_eq!(last_s(&flow, &away, 0.3), 0.3, "the process ended in the look away");
        assert_eq!(last_s(&flow, &away, 0.9), 0.4);
        assert_eq!(last_s(&flow, &away, 0.01), 0.02, "never before what was seen");
        assert_eq!(last_s(&flow, &[(0.05, 0.4)], 0.9), 0.02, "silent before the look away began");
        assert_eq!(last_s(&StreamCounts { calls: 10, ..flow }, &away, 0.9), 0.02, "too few calls for a rate");
    }

    #[test]
    fn nothing_is_made_up_where_all_was_seen() {
        let sum = KernelTotal { calls: 5, bytes: 50 };
        let given = unseen::<char>(sum, ObservedPart { counted: sum, perhaps: KernelTotal::default() }, &[]);
        assert_eq!(given, [(None, KernelTotal::default())]);
        let mut flow = StreamCounts::new(1, 0, 0, 0, Direction::In);
        (flow.calls, flow.bytes) = (5, 50);
        grow(&mut flow, 0, 0);
        assert_eq!((flow.calls, flow.bytes, flow.exact), (5, 50, true));
    }
}
