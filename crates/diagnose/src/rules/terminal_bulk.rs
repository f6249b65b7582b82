//! terminal-bulk: so much output on a terminal that the terminal sets the pace.
//!
//! Evidence: more than a mebibyte to a terminal, and the writing took a share of the run, the program's own
//! computing left out. At most Warn: somebody may want to see it pass.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::context::Context;
use crate::cost::BUFFER;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::total;
use weir_model::duration::format_seconds;

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

/// Nobody reads this much as it passes.
const MUCH: u64 = 1 << 20;

fn judge(context: &Context) -> Vec<Finding> {
    let bulk = |flow: &StreamCounts| context.kind(flow.file) == StreamKind::Terminal && flow.bytes >= MUCH;
    let flows = context.sums(Direction::Out, bulk);
    flows.filter_map(|flow| found(context, flow)).collect()
}

/// Seconds that the same bytes in a file would not take.
fn saved_s(context: &Context, flow: &StreamCounts) -> f64 {
    let computing = context.process(flow.pid).map_or(0.0, |process| process.user_s);
    let file =
        context.recording.prices.transfer_s(StreamKind::File, true, flow.bytes.div_ceil(BUFFER), flow.bytes);
    let spent = if computing > 0.0 { context.span_s(flow) - computing } else { context.flow_s(flow) };
    (spent - file).max(0.0)
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let saved = saved_s(context, flow);
    let severity = RULE.severity_of(context, saved)?;
    let why = format!(
        "{} wrote {} bytes to the terminal in {} calls: about {} of {} goes into showing them.",
        context.name(flow.pid),
        total(flow, flow.bytes),
        total(flow, flow.calls),
        format_seconds(saved),
        format_seconds(context.run_s())
    );
    let fix = format!(
        "{} > FILE, and look at it with less or tail; print a summary to the \
        terminal.",
        context.command(flow.pid)
    );
    let gain = Gain { elapsed_s: saved, calls: flow.calls.saturating_sub(flow.bytes.div_ceil(BUFFER)) };
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("bytes", flow.bytes).count("calls", flow.calls);
    Some(draft.figure("span_s", context.span_s(flow)).figure("share", context.share(saved)).say(why, fix))
}
