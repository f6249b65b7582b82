//! line-buffered-bulk: much output with one call for each line, where no reader needs single lines.
//!
//! Evidence: nearly every write ends with a newline and is about a line long, and a full buffer would save time. A terminal
//! needs lines. The reader of a pipe may need them too, so there the lines must come faster than a reader can take them one by
//! one, and not be requests or answers for which the other end waits. Several processes that append to one file need whole
//! lines: at most info.

use weir_model::trace::{OpenFile, StreamCounts};
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{is_line_by_line, is_synchronous};
use crate::context::RuleContext;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule, VerdictForm};
use crate::text::total;

pub(crate) const RULE: Rule = Rule {
    id: "line-buffered-bulk",
    title: "Slow output, one call for every line",
    meaning: "much output with one call for each line, where no reader needs single lines",
    position: 30,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::CpuTime,
    supersedes: &[
        OnStream("could-copy-in-kernel"),
        OnStream("double-buffered"),
        OnStream("unaligned-writes"),
    ],
    verdict: VerdictForm::SmallCalls { direction: Direction::Out, by_line: true },
    judge,
    ..Rule::DEFAULT
};

/// Lines per second that no reader takes one by one.
const BULK_RATE: f64 = 5_000.0;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.merged_streams(Direction::Out, |stream| applies(context, stream));
    streams.filter_map(|stream| finding(context, stream)).collect()
}

fn applies(context: &RuleContext, stream: &StreamCounts) -> bool {
    let bulk = match context.kind(stream.file) {
        StreamKind::File => true,
        StreamKind::Pipe => stream.calls as f64 / context.span_s(stream).max(1e-3) >= BULK_RATE,
        _ => false,
    };
    let syncs = is_synchronous(context, stream) || stream.syncs * 2 >= stream.moving_calls();
    bulk && is_line_by_line(stream) && !syncs && !context.is_answered(stream) && !context.passes_on(stream)
}

/// Returns whether another process appends to the same file.
fn is_shared_log(context: &RuleContext, stream: &StreamCounts) -> bool {
    let appends = context.file(stream.file).is_some_and(OpenFile::appends);
    let key = context.target_key(stream.file);
    let mut others = context.streams(Direction::Out).filter(|o| o.pid != stream.pid && o.bytes > 0);
    appends && others.any(|other| context.target_key(other.file) == key)
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let gain = context.gathering_gain(stream);
    let mut severity = RULE.severity_of(context, stream.pid, gain.elapsed_s.min(context.calls_s(stream)))?;
    if is_shared_log(context, stream) {
        severity = Severity::Info;
    }
    let share = context.share(context.calls_s(stream));
    let why = format!(
        "{} wrote {} bytes in {} calls, one for each line: these calls take about {:.0} % of the run{}.",
        context.stream_name(stream),
        total(stream, stream.bytes),
        total(stream, stream.calls),
        share * 100.0,
        if context.peers_read_blocks(stream) { ", and the reader takes larger blocks" } else { "" }
    );
    // A larger stdio buffer does not help a program that flushes or has its own buffer, so the fix names no option for it.
    let code = format!("{}{}", context.output_fix(stream), context.flush_clause(stream));
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file)).gain(gain);
    let finding = finding.count("calls", stream.calls).count("bytes", stream.bytes);
    let finding = finding.count("lines", stream.newline_ends);
    let finding = finding.sampled(context.sampled_site(stream));
    let finding = finding.figure("mean_bytes", stream.mean_bytes()).figure("share", share);
    let finding = finding.figure("own_s", context.around_calls_s(stream));
    let finding = finding.figure("cost_s", context.total_s(stream));
    let (command, command_gain) = context.coalesce_command(stream).unzip();
    Some(finding.command_gain(command_gain).build_with_command(why, command, code))
}
