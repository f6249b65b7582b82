//! tiny-reads: a call for every few bytes of input.
//!
//! Evidence: the program *asks* for a few bytes with most calls (a large question with a small answer is the
//! writer's doing), one after the other, and blocks would save time by the prices. Not meant are terminals,
//! devices and small reads at scattered places, which a buffer does not help. A shell that must read byte by
//! byte is charged too when it costs: the loop is what to replace then.

use weir_model::trace::Flow;
use weir_model::{Direction, Finding, FindingId, StreamKind};

use super::Rule;
use super::tiny_writes::{TINY, moving};
use crate::context::Context;
use crate::fix::Topic;
use crate::words::{count, thousands};

pub(crate) const RULE: Rule = Rule { id: FindingId::TinyReads, judge };

fn judge(context: &Context) -> Vec<Finding> {
    context
        .toward(Direction::In)
        .filter(|flow| applies(context, flow))
        .filter_map(|flow| found(context, flow))
        .collect()
}

fn applies(context: &Context, flow: &Flow) -> bool {
    let asked = if flow.asked.total() > 0 { &flow.asked } else { &flow.sizes };
    let small = flow.mean_bytes() < TINY as f64 && asked.below(TINY) * 10 >= asked.total() * 9;
    let kind = matches!(context.kind(flow.file), StreamKind::File | StreamKind::Pipe | StreamKind::Socket);
    moving(flow) >= 100 && small && kind && flow.jumps * 2 < flow.calls && flow.zeros * 2 < flow.calls
}

fn found(context: &Context, flow: &Flow) -> Option<Finding> {
    let gain = context.gathered(flow);
    let severity = context.severity(gain.elapsed_s)?;
    let share = context.share(context.flow_s(flow));
    let why = format!(
        "{} read {} with {} calls, {:.1} bytes each: about {:.0} % of the run goes into entering the kernel.",
        context.name(flow.pid),
        count(flow.bytes, "byte"),
        thousands(flow.calls),
        flow.mean_bytes(),
        share * 100.0
    );
    let run = context.weir_run("--coalesce", flow.pid);
    let fix = format!("{run}   or in code: {}.", context.code(flow.pid, flow.first_s, Topic::BufferInput));
    let draft = context.draft(RULE.id, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("calls", flow.calls).count("bytes", flow.bytes);
    let draft = draft.figure("mean_bytes", flow.mean_bytes()).figure("share", share);
    Some(draft.figure("cost_s", context.flow_s(flow)).say(why, fix))
}
