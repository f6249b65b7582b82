//! The finding about many small calls of a stream, for reads and writes.

use weir_model::Finding;
use weir_model::trace::StreamCounts;

use crate::context::Context;
use crate::fix::Topic;
use crate::rule::Rule;
use crate::words::total;

/// Of a flow that applies, whichever way it goes: what its calls cost, and that a buffer would spare most of them.
pub(crate) fn finding(
    context: &Context,
    flow: &StreamCounts,
    rule: &Rule,
    did: &str,
    topic: Topic,
) -> Option<Finding> {
    let gain = context.gathered(flow);
    let severity = rule.severity_of(context, gain.elapsed_s.min(context.flow_s(flow)))?;
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
    let draft = context.draft(rule, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("calls", flow.calls).count("bytes", flow.bytes);
    let draft = draft.figure("mean_bytes", flow.mean_bytes()).figure("share", share);
    let draft = draft.figure("own_s", context.own_s(flow));
    let draft = match peer {
        Some(peer) => draft.figure("peer_s", peer.saved_s).count("peer", peer.pid.into()),
        None => draft,
    };
    Some(draft.figure("cost_s", context.whole_s(flow)).say(why, fix))
}
