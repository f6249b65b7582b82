//! tiny-writes: a call for every few bytes.
//!
//! Evidence: most calls of a flow move less than 256 bytes, and gathering them saves time by the prices. Not
//! meant are lines (line-buffered-bulk), writes at scattered places, writes that wait for the device (the
//! sync- rules), commands to devices, and questions to a peer that answers each: those cannot be gathered.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{TINY, is_line_by_line, is_synchronous, moving_calls};
use crate::context::Context;
use crate::fix::Topic;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule, VerdictForm};
use crate::small_calls::finding;

pub(crate) const RULE: Rule = Rule {
    id: "tiny-writes",
    title: "Slow output, one call for every few bytes",
    meaning: "many write calls of a few bytes each",
    position: 10,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::CpuTime,
    supersedes: &[
        OnStream("line-buffered-bulk"),
        OnStream("unaligned-writes"),
        OnStream("could-copy-in-kernel"),
        OnStream("double-buffered"),
        OnStream("small-pipe"),
    ],
    verdict: VerdictForm::SmallCalls { direction: Direction::Out, by_line: false },
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    context
        .sums(Direction::Out, |flow| applies(context, flow))
        .filter_map(|flow| finding(context, flow, &RULE, "wrote", Topic::BufferOutput))
        .collect()
}

fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let moving = moving_calls(flow);
    let sizes = flow.sizes.total().max(1);
    let small = flow.mean_bytes() < TINY as f64 && flow.sizes.below(TINY / 2) * 2 >= sizes;
    let kind = context.kind(flow.file);
    let gatherable = kind != StreamKind::Other && (kind != StreamKind::Device || context.harmless(flow.file));
    moving >= 100
        && small
        && gatherable
        && flow.jumps * 2 < flow.calls
        && !is_line_by_line(flow)
        && !is_synchronous(context, flow)
        && flow.syncs * 2 < moving
        && !answered(context, flow)
}

/// Whether each write is followed by an answer from the same peer.
fn answered(context: &Context, flow: &StreamCounts) -> bool {
    match context.kind(flow.file) {
        StreamKind::Socket => {
            let both = |other: &&&StreamCounts| other.direction == Direction::In && other.file == flow.file;
            context.flows(flow.pid).iter().find(both).is_some_and(|back| back.calls * 2 >= flow.calls)
        }
        StreamKind::Pipe => {
            let target = context.target(flow.file);
            let readers = context.toward(Direction::In).filter(|other| context.target(other.file) == target);
            let peers: Vec<u32> = readers.map(|other| other.pid).filter(|&pid| pid != flow.pid).collect();
            let answers = peers.iter().flat_map(|&peer| context.flows(peer)).filter(|other| {
                let back = context.target(other.file);
                let mine = |mine: &&StreamCounts| {
                    mine.direction == Direction::In && context.target(mine.file) == back
                };
                other.direction == Direction::Out && context.flows(flow.pid).iter().any(mine)
            });
            answers.map(|answer| answer.calls).sum::<u64>() * 2 >= flow.calls
        }
        _ => false,
    }
}
