//! line-buffered-bulk: much output, a call for each line, to where nobody waits for lines.
//!
//! Evidence: nearly every write ends with a newline and is about a line long, and full buffers would save time
//! by the prices. A terminal wants lines. A pipe's reader may want them as well: there the lines must come
//! faster than anyone looks at them. Several writers that append to one file need whole lines: at most Info.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{is_line_by_line, is_synchronous, moving_calls};
use crate::context::Context;
use crate::fix::Topic;
use crate::flags::O_APPEND;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule, VerdictForm};
use crate::words::total;

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

/// Lines a second that no reader takes one by one.
const BULK_RATE: f64 = 5_000.0;

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.sums(Direction::Out, |flow| applies(context, flow));
    flows.filter_map(|flow| found(context, flow)).collect()
}

fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let bulk = match context.kind(flow.file) {
        StreamKind::File => true,
        StreamKind::Pipe => flow.calls as f64 / context.span_s(flow).max(1e-3) >= BULK_RATE,
        _ => false,
    };
    bulk && is_line_by_line(flow) && !is_synchronous(context, flow) && flow.syncs * 2 < moving_calls(flow)
}

/// Whether somebody else appends to the same file.
fn shared_log(context: &Context, flow: &StreamCounts) -> bool {
    let appends = context.file(flow.file).is_some_and(|file| file.flags & O_APPEND != 0);
    let target = context.target(flow.file);
    let mut others = context.toward(Direction::Out).filter(|other| other.pid != flow.pid && other.bytes > 0);
    appends && others.any(|other| context.target(other.file) == target)
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let gain = context.gathered(flow);
    let mut severity = RULE.severity_of(context, gain.elapsed_s.min(context.flow_s(flow)))?;
    if shared_log(context, flow) {
        severity = Severity::Info;
    }
    let share = context.share(context.flow_s(flow));
    let why = format!(
        "{} wrote {} bytes in {} calls, one for each line: about {:.0} % of the run{}.",
        context.name(flow.pid),
        total(flow, flow.bytes),
        total(flow, flow.calls),
        share * 100.0,
        if context.taken_in_blocks(flow) { ", and nobody reads line by line" } else { "" }
    );
    // A larger buffer does nothing for a program that flushes, or that has its own: which it is, is not known.
    let code = context.code(flow.pid, flow.first_s, Topic::BufferOutput);
    let fix = format!("{}{code}.", context.gathering(flow));
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("calls", flow.calls).count("bytes", flow.bytes).count("lines", flow.newline_ends);
    let draft = draft.figure("mean_bytes", flow.mean_bytes()).figure("share", share);
    let draft = draft.figure("own_s", context.own_s(flow)).figure("cost_s", context.whole_s(flow));
    Some(draft.say(why, fix))
}
