//! tiny-reads: a call for every few bytes of input.
//!
//! Evidence: the program *asks* for a few bytes with most calls (a large question with a small answer is the
//! writer's doing), one after the other, and blocks would save time by the prices. Not meant are terminals,
//! devices and small reads at scattered places, which a buffer does not help. A shell that must read byte by
//! byte is charged too when it costs: the loop is what to replace then.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, FindingId, StreamKind};

use super::Rule;
use super::tiny_writes::{TINY, found, moving};
use crate::context::Context;
use crate::fix::Topic;

pub(crate) const RULE: Rule = Rule { id: FindingId::TinyReads, judge };

fn judge(context: &Context) -> Vec<Finding> {
    context
        .sums(Direction::In, |flow| applies(context, flow))
        .filter_map(|flow| found(context, flow, &RULE, "read", Topic::BufferInput))
        .collect()
}

fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let asked = if flow.asked.total() > 0 { &flow.asked } else { &flow.sizes };
    let small = flow.mean_bytes() < TINY as f64 && asked.below(TINY) * 10 >= asked.total() * 9;
    let kind = matches!(context.kind(flow.file), StreamKind::File | StreamKind::Pipe | StreamKind::Socket);
    moving(flow) >= 100 && small && kind && flow.jumps * 2 < flow.calls && flow.zeros * 2 < flow.calls
}
