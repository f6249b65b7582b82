//! short-write-unhandled: write(2) takes only a part, and the rest is never written.
//!
//! Evidence: the short call was the last one on its descriptor, or the next one (if every call was recorded) neither begins
//! after the part that was taken nor asks for the rest; then exit status 0 and nothing on standard error. A program that a
//! signal ended, or that printed a message, has handled it. A rest that only the kernel's totals contain was written. After a
//! sampling gap no recorded call is known to be the last one, unless the kernel's totals contain no other.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity};

use crate::context::{RuleContext, TimedCall};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::count;

pub(crate) const RULE: Rule = Rule {
    id: "short-write-unhandled",
    title: "End of a write missing",
    meaning: "write(2) takes only a part and the rest is never written",
    position: 200,
    severity: SeverityRule::Effect { least: Severity::High, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.streams(Direction::Out).filter(|stream| stream.short > 0);
    streams.filter_map(|stream| judge_stream(context, stream)).collect()
}

fn judge_stream(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let is_write = |timed: &&TimedCall| {
        let call = timed.call;
        call.fd == stream.fd && call.file.is_none_or(|file| file == stream.file) && call.op.writes()
    };
    let writes: Vec<TimedCall> = context.calls(stream.pid).iter().filter(is_write).copied().collect();
    let all_recorded = writes.len() as u64 >= stream.calls;
    let is_short =
        |timed: &TimedCall| timed.call.result > 0 && (timed.call.result as u64) < timed.call.requested_bytes;
    let mut short_writes = writes.iter().enumerate().filter(|(_, timed)| is_short(timed));
    let (_, dropped) = short_writes.find(|(index, timed)| {
        let next = writes.get(index + 1);
        // If calls are missing, only the last call of the stream is known to have no successor.
        let last = next.is_none()
            && (all_recorded || stream.last_s <= timed.at_s)
            && !may_continue_in_gap(context, stream, timed.at_s);
        let abandoned = all_recorded && next.is_some_and(|next| !continues(timed, next));
        last || abandoned
    })?;
    let silent = context.exited_silently(stream.pid, dropped.at_s);
    (silent && !is_rest_counted(context, dropped)).then(|| finding(context, stream, dropped))
}

/// Returns whether a sampling gap after a time may contain more calls of a stream. The kernel's totals exclude that if they were
/// read and left no call for the gaps: then the stream is exact.
fn may_continue_in_gap(context: &RuleContext, stream: &StreamCounts, at_s: f64) -> bool {
    let has_totals = context.process(stream.pid).is_some_and(|process| process.io.is_some());
    let is_whole = stream.exact && has_totals;
    !is_whole && context.has_gap(stream.pid, at_s, context.ended_at(stream.pid))
}

/// Returns whether the kernel counted more written bytes of the process than the recording has, by at least the rest of a
/// short write: then a call that was not recorded wrote it.
fn is_rest_counted(context: &RuleContext, short: &TimedCall) -> bool {
    let rest = short.call.requested_bytes - short.call.result as u64;
    let written = context.process(short.pid).and_then(|process| process.io).map(|io| io.written_bytes);
    let outputs = context.streams_of(short.pid).iter().filter(|stream| stream.direction != Direction::In);
    let recorded: u64 = outputs.map(|stream| stream.bytes).sum();
    written.is_some_and(|written| written >= recorded + rest)
}

/// Returns whether the next call writes the rest of a short one.
fn continues(short: &TimedCall, next: &TimedCall) -> bool {
    let taken = short.call.result as u64;
    let rest = short.call.requested_bytes - taken;
    let follows = next.call.args[1] == short.call.args[1].wrapping_add(taken);
    // writev(2) takes a list, and some programs move the rest to the front of their buffer.
    follows || next.call.requested_bytes == rest || next.call.op != short.call.op || next.call.result < 0
}

fn finding(context: &RuleContext, stream: &StreamCounts, short: &TimedCall) -> Finding {
    let taken = short.call.result as u64;
    let rest = short.call.requested_bytes - taken;
    let why = format!(
        "{}(2) took {} of {} from {}, which never wrote the other {} and ended with status 0.",
        short.call.op.name(),
        count(taken, "byte"),
        count(short.call.requested_bytes, "byte"),
        context.stream_name(stream),
        count(rest, "byte")
    );
    let fix = "write the rest in a loop until all is taken or an error occurs (EAGAIN: poll(2) first): \
               for (done = 0; done < n; done += got) { got = write(fd, buffer + done, n - done); \
               if (got < 0) … }; fwrite, Python's buffered files and print, not syswrite, do it \
               themselves.";
    let finding = context.finding(&RULE, Severity::High, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.count("asked_bytes", short.call.requested_bytes).count("written_bytes", taken);
    finding.count("lost_bytes", rest).figure("at_s", short.at_s).build(why, fix)
}
