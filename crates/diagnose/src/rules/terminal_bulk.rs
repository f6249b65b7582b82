//! terminal-bulk: the terminal, not the program, limits the speed.
//!
//! Evidence: more than a mebibyte was written to a terminal, and the writing took a share of the run, without the program's own
//! computing. At most warn, because the output may be meant to be watched.

use weir_model::duration::format_seconds;
use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::context::RuleContext;
use crate::cost::BUFFER;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::total;

pub(crate) const RULE: Rule = Rule {
    id: "terminal-bulk",
    title: "Slow terminal",
    meaning: "the terminal, not the program, limits the speed",
    position: 290,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::WaitTime,
    supersedes: &[OnStream("tiny-writes")],
    judge,
    ..Rule::DEFAULT
};

/// More output than a user reads as it passes.
const MUCH: u64 = 1 << 20;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.merged_streams(Direction::Out, |stream| is_bulk(context, stream));
    streams.filter_map(|stream| finding(context, stream)).collect()
}

/// Returns whether a process wrote much, and at least half of it to a terminal. On a busy machine the stream of some bytes
/// is unknown.
fn is_bulk(context: &RuleContext, stream: &StreamCounts) -> bool {
    let counts = context.recording.counts.iter();
    let unknown = counts
        .filter(|other| !other.is_known() && (other.pid, other.direction) == (stream.pid, Direction::Out));
    let unknown_bytes: u64 = unknown.map(|other| other.bytes).sum();
    let is_terminal = context.kind(stream.file) == StreamKind::Terminal;
    is_terminal && stream.bytes + unknown_bytes >= MUCH && stream.bytes * 2 >= MUCH
}

/// Returns the seconds that writing the same bytes to a file would save.
fn saved_s(context: &RuleContext, stream: &StreamCounts) -> f64 {
    let prices = &context.recording.prices;
    let file_s = prices.transfer_s(StreamKind::File, true, stream.bytes.div_ceil(BUFFER), stream.bytes);
    let spent_s = match context.user_s(stream.pid) {
        Some(user_s) => context.span_s(stream) - user_s,
        None => context.calls_s(stream),
    };
    (spent_s - file_s).max(0.0)
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let saved_s = saved_s(context, stream);
    let severity = RULE.severity_of(context, stream.pid, saved_s)?;
    let why = format!(
        "{} wrote {} bytes to the terminal in {} calls: showing them takes about {} of {}.",
        context.stream_name(stream),
        total(stream, stream.bytes),
        total(stream, stream.calls),
        format_seconds(saved_s),
        format_seconds(context.run_s())
    );
    let fix = format!(
        "{} > FILE, and read it with less or tail; or open a file for it in the program and print a summary to the \
            terminal.",
        context.command(stream.pid)
    );
    let calls = stream.calls.saturating_sub(stream.bytes.div_ceil(BUFFER));
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.gain(Gain { elapsed_s: saved_s, calls });
    let finding = finding.count("bytes", stream.bytes).count("calls", stream.calls);
    let finding = finding.figure("span_s", context.span_s(stream));
    Some(finding.figure("share", context.share(saved_s)).build(why, fix))
}
