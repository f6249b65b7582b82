//! Makes flows that were seen in part agree with the kernel's exact totals.

use weir_model::trace::{Flow, Histogram, IoTotals, OpenFile};
use weir_model::{Direction, StreamKind};

/// What was added since.
pub(super) fn less(now: IoTotals, before: IoTotals) -> IoTotals {
    IoTotals {
        read_calls: now.read_calls.saturating_sub(before.read_calls),
        write_calls: now.write_calls.saturating_sub(before.write_calls),
        read_bytes: now.read_bytes.saturating_sub(before.read_bytes),
        written_bytes: now.written_bytes.saturating_sub(before.written_bytes),
    }
}

/// Spreads the calls and bytes of one process that nobody saw over its flows, in the shares that were seen.
/// Those in `done` are known whole. Sockets are not among them: their own calls are not in the totals.
pub(super) fn to_totals(flows: Vec<&mut Flow>, done: &[&mut Flow], files: &[OpenFile], totals: IoTotals) {
    let counted =
        |flow: &Flow| files.get(flow.file as usize).is_none_or(|file| file.kind != StreamKind::Socket);
    let (mut into, mut out): (Vec<&mut Flow>, Vec<&mut Flow>) =
        flows.into_iter().filter(|flow| counted(flow)).partition(|flow| flow.direction == Direction::In);
    let known = |direction| {
        let flows = done.iter().filter(|flow| counted(flow) && flow.direction == direction);
        flows.fold((0, 0), |sum, flow| (sum.0 + flow.calls, sum.1 + flow.bytes))
    };
    let (read, written) = (known(Direction::In), known(Direction::Out));
    spread(&mut into, totals.read_calls.saturating_sub(read.0), totals.read_bytes.saturating_sub(read.1));
    spread(
        &mut out,
        totals.write_calls.saturating_sub(written.0),
        totals.written_bytes.saturating_sub(written.1),
    );
}

fn spread(flows: &mut [&mut Flow], calls: u64, bytes: u64) {
    let seen_calls: u64 = flows.iter().map(|flow| flow.calls).sum();
    let seen_bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
    let missing = (calls.saturating_sub(seen_calls), bytes.saturating_sub(seen_bytes));
    if seen_calls == 0 || missing.0 == 0 {
        return;
    }
    // What one alone can have made is known exactly, what several have made together is in their sum.
    let several = flows.iter().filter(|flow| flow.calls > 0).count() > 1;
    // The flow with most calls takes what rounding leaves.
    flows.sort_by_key(|flow| flow.calls);
    let (mut left_calls, mut left_bytes) = missing;
    let last = flows.len() - 1;
    for (number, flow) in flows.iter_mut().enumerate() {
        let share = |of: u64, whole: u64, seen: u64| {
            if whole == 0 { 0 } else { (u128::from(of) * u128::from(seen) / u128::from(whole)) as u64 }
        };
        let mut more_calls = share(missing.0, seen_calls, flow.calls).min(left_calls);
        let mut more_bytes = share(missing.1, seen_bytes, flow.bytes).min(left_bytes);
        if number == last {
            (more_calls, more_bytes) = (left_calls, left_bytes);
        }
        left_calls -= more_calls;
        left_bytes -= more_bytes;
        grow(flow, more_calls, more_bytes);
        flow.estimated |= several && more_calls > 0;
    }
}

/// A flow that was busy until the look away began goes on in it.
const NEXT_CALL_S: f64 = 0.002;
/// Fewer calls say nothing of a rate.
const LEAST_CALLS: u64 = 100;

/// When the last call of a flow was, that made some unseen: one that was busy until a look away (`unwatched`, in order
/// of time) began went on to its end, or the flow's own.
pub(super) fn last_s(flow: &Flow, unwatched: &[(f64, f64)], ended_s: f64) -> f64 {
    let away = |&&(from_s, to_s): &&(f64, f64)| from_s <= flow.last_s + NEXT_CALL_S && to_s > flow.last_s;
    let away = unwatched.iter().find(away).filter(|_| flow.calls >= LEAST_CALLS);
    away.map_or(flow.last_s, |&(_, to_s)| to_s.min(ended_s).max(flow.last_s))
}

/// Calls on sockets are in no totals: while nobody looked (`unwatched`, in order of time) they went on as they
/// were seen to go. `ended` is when the flow's process was gone.
pub(super) fn to_time(flow: &mut Flow, unwatched: &[(f64, f64)], ended_s: f64) {
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

fn grow(flow: &mut Flow, calls: u64, bytes: u64) {
    if calls == 0 {
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

    #[test]
    fn what_was_not_seen_goes_where_most_was_seen_and_the_sum_is_exact() {
        let mut flows: Vec<Flow> = (0..3).map(|fd| Flow::new(1, 0, fd, 0, Direction::In)).collect();
        for (flow, calls) in flows.iter_mut().zip([1, 10, 100]) {
            flow.calls = calls;
            flow.bytes = calls;
            flow.zeros = calls / 2;
            flow.sizes.add(1, calls);
        }
        let totals = IoTotals { read_calls: 1_000_000, read_bytes: 999_999, ..IoTotals::default() };
        to_totals(flows.iter_mut().collect(), &[], &[], totals);
        assert_eq!(flows.iter().map(|flow| flow.calls).sum::<u64>(), 1_000_000);
        assert_eq!(flows.iter().map(|flow| flow.bytes).sum::<u64>(), 999_999);
        assert!(flows[2].calls > 900_000 && !flows[2].exact);
        assert!(flows[2].zeros.abs_diff(flows[2].calls / 2) <= 1, "kinds of calls keep their share");
        assert!(flows.iter().all(|flow| flow.estimated), "only their sum is exact");
    }

    #[test]
    fn what_one_stream_alone_can_have_made_is_exact() {
        let mut flow = Flow { calls: 10, bytes: 10, ..Flow::new(1, 0, 0, 0, Direction::In) };
        flow.sizes.add(1, 10);
        let mut silent = Flow::new(1, 0, 3, 0, Direction::In);
        let totals = IoTotals { read_calls: 1000, read_bytes: 999, ..IoTotals::default() };
        to_totals(vec![&mut flow, &mut silent], &[], &[], totals);
        assert_eq!((flow.calls, flow.bytes, flow.exact, flow.estimated), (1000, 999, false, false));
    }

    #[test]
    fn a_socket_goes_on_while_nobody_looks() {
        let flow = || Flow { calls: 1000, bytes: 2000, last_s: 0.2, ..Flow::new(1, 0, 3, 0, Direction::Out) };
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
        let flow = Flow { calls: 1000, last_s: 0.02, ..Flow::new(1, 0, 1, 0, Direction::Out) };
        let away = [(0.02, 0.02), (0.021, 0.4)];
        assert_eq!(last_s(&flow, &away, 0.3), 0.3, "the process ended in the look away");
        assert_eq!(last_s(&flow, &away, 0.9), 0.4);
        assert_eq!(last_s(&flow, &away, 0.01), 0.02, "never before what was seen");
        assert_eq!(last_s(&flow, &[(0.05, 0.4)], 0.9), 0.02, "silent before the look away began");
        assert_eq!(last_s(&Flow { calls: 10, ..flow }, &away, 0.9), 0.02, "too few calls for a rate");
    }

    #[test]
    fn nothing_is_made_up_where_all_was_seen() {
        let mut flow = Flow::new(1, 0, 0, 0, Direction::In);
        (flow.calls, flow.bytes) = (5, 50);
        let totals = IoTotals { read_calls: 5, read_bytes: 50, ..IoTotals::default() };
        to_totals(vec![&mut flow], &[], &[], totals);
        assert_eq!((flow.calls, flow.bytes, flow.exact), (5, 50, true));
    }
}
