//! tiny-reads: a call for every few bytes of input.
//!
//! Evidence: the program *asks* for a few bytes with most calls (a large question with a small answer is the
//! writer's doing), one after the other, and blocks would save time by the prices. Not meant are terminals,
//! devices and small reads at scattered places, which a buffer does not help. A shell that must read byte by
//! byte is charged too when it costs: the loop is what to replace then.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{TINY, moving_calls};
use crate::context::Context;
use crate::fix::Topic;
use crate::rule::{GainKind, Rule, SeverityRule, VerdictForm};
use crate::small_calls::finding;

pub(crate) const RULE: Rule = Rule {
    id: "tiny-reads",
    title: "Slow input, one call for every few bytes",
    meaning: "many read calls of a few bytes each",
    position: 20,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::CpuTime,
    verdict: VerdictForm::SmallCalls { direction: Direction::In, by_line: false },
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    context
        .sums(Direction::In, |flow| applies(context, flow))
        .filter_map(|flow| finding(context, flow, &RULE, "read", Topic::BufferInput))
        .collect()
}

fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let asked = if flow.asked.total() > 0 { &flow.asked } else { &flow.sizes };
    let small = flow.mean_bytes() < TINY as f64 && asked.below(TINY) * 10 >= asked.total() * 9;
    let kind = matches!(context.kind(flow.file), StreamKind::File | StreamKind::Pipe | StreamKind::Socket);
    moving_calls(flow) >= 100 && small && kind && flow.jumps * 2 < flow.calls && flow.zeros * 2 < flow.calls
}
