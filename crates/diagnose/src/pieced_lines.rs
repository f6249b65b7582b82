//! Two processes that write to one target at once, each of its lines in several calls. A backend records the first calls of a
//! stream only: they show in how many calls a line is written. The counts show that the later lines are written in as many.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, StreamKind};

use crate::context::RuleContext;
use crate::split_lines::{first_writes, has_one_end};

/// The fewest calls of each process in their common time. Fewer are perhaps one after the other.
const MIN_TOGETHER: f64 = 100.0;

/// The most that the mean bytes of a call differ from those of the recorded calls, as a factor: printed counters get longer.
const SAME_SIZE: f64 = 1.5;

/// Two streams on one target.
pub(crate) struct PiecedLines<'a> {
    pub torn: &'a StreamCounts,
    pub other: &'a StreamCounts,
    /// Mean number of calls for a recorded line of `torn`.
    pub calls_per_line: f64,
    /// Calls of `torn` and of `other` in their common time.
    pub together: [f64; 2],
}

/// Returns the pair of writers with most calls in their common time. No pair is a process and its descendant, or two that both
/// read from others as often as they write lines: these may wait for each other.
pub(crate) fn pieced_lines<'a>(
    context: &RuleContext,
    writers: &[&'a StreamCounts],
) -> Option<PiecedLines<'a>> {
    let pieced = writers.iter().filter_map(|stream| Some((*stream, calls_per_line(context, stream)?)));
    let pieced: Vec<(&StreamCounts, f64)> = pieced.collect();
    let pairs = pieced.iter().flat_map(|a| pieced.iter().map(move |b| (*a, *b)));
    let found = pairs.filter_map(|((torn, calls_per_line), (other, calls_per_other))| {
        let together = together(torn, other);
        let related =
            context.is_descendant(torn.pid, other.pid) || context.is_descendant(other.pid, torn.pid);
        let is_shown = torn.pid != other.pid
            && !related
            && !(is_driven(context, torn, calls_per_line) && is_driven(context, other, calls_per_other))
            && has_one_end(context, torn, other)
            && together.iter().all(|calls| *calls >= MIN_TOGETHER);
        is_shown.then_some(PiecedLines { torn, other, calls_per_line, together })
    });
    let least = |lines: &PiecedLines| lines.together[0].min(lines.together[1]);
    found.max_by(|a, b| least(a).total_cmp(&least(b)))
}

/// Returns the mean number of calls for a line, if each recorded line has several and the counts fit to these lines.
fn calls_per_line(context: &RuleContext, stream: &StreamCounts) -> Option<f64> {
    let (mut lines, mut calls, mut bytes) = (0, 0, 0);
    let mut line = (0, 0);
    let writes = first_writes(context, stream);
    for write in &writes {
        line = (line.0 + 1, line.1 + write.call.result.max(0));
        if write.call.tail != Some(b'\n') {
            continue;
        }
        if line.0 < 2 {
            return None;
        }
        (lines, calls, bytes) = (lines + 1, calls + line.0, bytes + line.1);
        line = (0, 0);
    }
    let (first, last) = (writes.first()?, writes.last()?);
    if lines == 0 || context.has_gap_of_any(first.at_s, last.at_s) {
        return None;
    }
    let calls_per_line = f64::from(calls) / f64::from(lines);
    let factor = stream.mean_bytes() / (bytes as f64 / f64::from(calls));
    // A line that ends with a call of its newline alone is not counted among the ends.
    let most_ends = stream.moving_calls() as f64 / calls_per_line * SAME_SIZE;
    let fits = (1.0 / SAME_SIZE..=SAME_SIZE).contains(&factor) && stream.newline_ends as f64 <= most_ends;
    fits.then_some(calls_per_line)
}

/// Returns whether the process of a stream reads from pipes, sockets or terminals about once for each line or more often.
fn is_driven(context: &RuleContext, stream: &StreamCounts, calls_per_line: f64) -> bool {
    let lines = stream.moving_calls() as f64 / calls_per_line;
    context.streams_of(stream.pid).iter().any(|input| {
        let kind = context.kind(input.file);
        let comes_from_others = matches!(kind, StreamKind::Pipe | StreamKind::Socket | StreamKind::Terminal);
        input.direction == Direction::In && comes_from_others && input.moving_calls() as f64 * 2.0 >= lines
    })
}

/// Returns how many calls two streams made in the time in which both were used, if their calls are spread evenly.
fn together(a: &StreamCounts, b: &StreamCounts) -> [f64; 2] {
    let common_s = (a.last_s.min(b.last_s) - a.first_s.max(b.first_s)).max(0.0);
    [a, b].map(|stream| {
        let span_s = (stream.last_s - stream.first_s).max(1e-9);
        stream.moving_calls() as f64 * (common_s / span_s).min(1.0)
    })
}
