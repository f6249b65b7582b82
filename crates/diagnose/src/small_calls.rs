//! The finding about many small calls, for reads and writes alike.

use weir_model::Finding;
use weir_model::trace::StreamCounts;

use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::rule::Rule;
use crate::text::total;

/// Returns the finding about a stream with many small calls, or None if a buffer would save too little. `verb` says what the
/// process did with the bytes.
pub(crate) fn finding(
    context: &RuleContext,
    stream: &StreamCounts,
    rule: &Rule,
    verb: &str,
    fix: CodeFix,
) -> Option<Finding> {
    let gain = context.gathering_gain(stream);
    let severity = rule.severity_of(context, gain.elapsed_s.min(context.calls_s(stream)))?;
    let share = context.share(context.calls_s(stream));
    let peer = context.slowed_peer(stream).filter(|peer| context.severity(peer.saved_s).is_some());
    let why = format!(
        "{} {verb} {} bytes with {} calls, {:.1} bytes each: these calls take about {:.0} % of the run{}.",
        context.name(stream.pid),
        total(stream, stream.bytes),
        total(stream, stream.calls),
        stream.mean_bytes(),
        share * 100.0,
        peer.as_ref().map_or(String::new(), |peer| peer.clause(context))
    );
    let code = context.code_fix(stream.pid, stream.first_s, (stream.fd, Some(stream.file)), fix);
    let finding = context.finding(rule, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.gain(gain).count("calls", stream.calls).count("bytes", stream.bytes);
    let finding = finding.figure("mean_bytes", stream.mean_bytes()).figure("share", share);
    let finding = finding.figure("own_s", context.around_calls_s(stream));
    let finding = finding.figure("cost_s", context.total_s(stream));
    let finding = match peer {
        Some(peer) => finding.figure("peer_s", peer.saved_s).count("peer", peer.pid.into()),
        None => finding,
    };
    Some(finding.build_with_command(why, context.coalesce_command(stream), code))
}
