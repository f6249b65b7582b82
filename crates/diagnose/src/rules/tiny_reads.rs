//! tiny-reads: many read calls of a few bytes each.
//!
//! Evidence: most calls *ask* for a few bytes (a large request with a small result is the writer's doing), one after the other,
//! and blocks would save time; or nearly all calls ask for less than pays on this machine. Terminals, devices and small reads at
//! scattered positions are not reported, because a buffer does not help them; nor are reads that get the answers to requests,
//! one by one. A shell that must read single bytes is reported if it costs time: the fix is to replace the loop.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{is_below_knee, is_tiny};
use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::rule::{GainKind, Rule, SeverityRule, VerdictForm};
use crate::small_calls;

pub(crate) const RULE: Rule = Rule {
    id: "tiny-reads",
    title: "Slow input, too few bytes with each call",
    meaning: "many read calls that cost more than their bytes",
    position: 20,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::CpuTime,
    verdict: VerdictForm::SmallCalls { direction: Direction::In, by_line: false },
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.merged_streams(Direction::In, |stream| applies(context, stream));
    streams
        .filter_map(|stream| small_calls::finding(context, stream, &RULE, "read", CodeFix::BufferInput))
        .collect()
}

fn applies(context: &RuleContext, stream: &StreamCounts) -> bool {
    let small = is_tiny(stream) || is_below_knee(context, stream);
    let kind = context.kind(stream.file);
    let bufferable = matches!(kind, StreamKind::File | StreamKind::Pipe | StreamKind::Socket);
    stream.moving_calls() >= 100
        && small
        && bufferable
        && stream.jumps * 2 < stream.calls
        && stream.zeros * 2 < stream.calls
        && !context.is_answer(stream)
}
