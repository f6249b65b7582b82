//! tiny-writes: a call for every few bytes.
//!
//! Evidence: most calls of a flow move less than 256 bytes, and gathering them saves time by the prices. Not
//! meant are lines (line-buffered-bulk), writes at scattered places, writes that wait for the device (the
//! sync- rules), commands to devices, and questions to a peer that answers each: those cannot be gathered.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, FindingId, StreamKind};

use super::Rule;
use crate::context::Context;
use crate::fix::Topic;
use crate::words::total;

pub(crate) const RULE: Rule = Rule { id: FindingId::TinyWrites, judge };

/// A call that moves this much is no longer tiny.
pub(crate) const TINY: u64 = 512;

fn judge(context: &Context) -> Vec<Finding> {
    context
        .sums(Direction::Out, |flow| applies(context, flow))
        .filter_map(|flow| found(context, flow, &RULE, "wrote", Topic::BufferOutput))
        .collect()
}

fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let moving = moving(flow);
    let sizes = flow.sizes.total().max(1);
    let small = flow.mean_bytes() < TINY as f64 && flow.sizes.below(TINY / 2) * 2 >= sizes;
    let kind = context.kind(flow.file);
    let gatherable = kind != StreamKind::Other && (kind != StreamKind::Device || context.harmless(flow.file));
    moving >= 100
        && small
        && gatherable
        && flow.jumps * 2 < flow.calls
        && !super::line_buffered_bulk::by_line(flow)
        && !super::sync_tiny_writes::waits(context, flow)
        && flow.syncs * 2 < moving
        && !answered(context, flow)
}

/// Calls that moved bytes.
pub(super) fn moving(flow: &StreamCounts) -> u64 {
    flow.calls.saturating_sub(flow.errors + flow.again + flow.zeros)
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
                let mine =
                    |mine: &&StreamCounts| mine.direction == Direction::In && context.target(mine.file) == back;
                other.direction == Direction::Out && context.flows(flow.pid).iter().any(mine)
            });
            answers.map(|answer| answer.calls).sum::<u64>() * 2 >= flow.calls
        }
        _ => false,
    }
}

/// Of a flow that applies, whichever way it goes: what its calls cost, and that a buffer would spare most of them.
pub(super) fn found(context: &Context, flow: &StreamCounts, rule: &Rule, did: &str, topic: Topic) -> Option<Finding> {
    let gain = context.gathered(flow);
    let severity = context.severity(gain.elapsed_s.min(context.flow_s(flow)))?;
    let share = context.share(context.flow_s(flow));
    let peer = context.small_reader(flow).filter(|peer| context.severity(peer.saved_s).is_some());
    let why = format!(
        "{} {did} {} bytes with {} calls, {:.1} bytes each: about {:.0} % of the run goes into entering the kernel{}.",
        context.name(flow.pid),
        total(flow, flow.bytes),
        total(flow, flow.calls),
        flow.mean_bytes(),
        share * 100.0,
        peer.as_ref().map_or(String::new(), |peer| peer.in_words(context))
    );
    let fix = format!("{}{}.", context.gathering(flow), context.code(flow.pid, flow.first_s, topic));
    let draft = context.draft(rule.id, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("calls", flow.calls).count("bytes", flow.bytes);
    let draft = draft.figure("mean_bytes", flow.mean_bytes()).figure("share", share);
    let draft = draft.figure("own_s", context.own_s(flow));
    let draft = match peer {
        Some(peer) => draft.figure("peer_s", peer.saved_s).count("peer", peer.pid.into()),
        None => draft,
    };
    Some(draft.figure("cost_s", context.whole_s(flow)).say(why, fix))
}
