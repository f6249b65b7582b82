//! The finding about many small calls, for reads and writes alike.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, Size};

use crate::call_patterns::is_tiny;
use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::rule::Rule;
use crate::text::total;

/// The least share of the run that larger calls must save if the calls are not tiny: a block of a few KiB is a reasonable choice
/// if it costs less.
const MIN_SHARE: f64 = 0.15;

/// Adds what the block size of a program's output also saves on its input from devices such as /dev/zero, which has no finding
/// of its own.
fn add_sources(context: &RuleContext, output: &StreamCounts, gain: &mut Gain) {
    let sources = context.streams_of(output.pid).iter().filter(|input| {
        (input.direction, output.direction) == (Direction::In, Direction::Out)
            && context.is_passive_device(input.file)
            && input.max_requested_bytes == output.max_requested_bytes
    });
    for source in sources {
        let more = context.gathering_gain(source);
        gain.elapsed_s = context.cap_to_cpu(output.pid, gain.elapsed_s + more.elapsed_s);
        gain.calls += more.calls;
    }
}

/// Returns the finding about a stream with many small calls, or None if a buffer would save too little. `verb` says what the
/// process did with the bytes.
pub(crate) fn finding(
    context: &RuleContext,
    stream: &StreamCounts,
    rule: &Rule,
    verb: &str,
    fix: CodeFix,
) -> Option<Finding> {
    let option = context.block_option(stream);
    let mut gain = context.gathering_gain(stream);
    if option.is_some() {
        add_sources(context, stream, &mut gain);
    }
    let severity = rule.severity_of(context, stream.pid, gain.elapsed_s.min(context.calls_s(stream)))?;
    let tiny = is_tiny(stream);
    if !tiny && (severity < Severity::Warn || context.share_when_idle(stream.pid, gain.elapsed_s) < MIN_SHARE)
    {
        return None;
    }
    let share = context.share(context.calls_s(stream));
    let peer = context.slowed_peer(stream).filter(|peer| context.severity(peer.pid, peer.saved_s).is_some());
    let why = format!(
        "{} {verb} {} bytes with {} calls, {:.1} bytes each: these calls take about {:.0} % of the run{}.",
        context.stream_name(stream),
        total(stream, stream.bytes),
        total(stream, stream.calls),
        stream.mean_bytes(),
        share * 100.0,
        peer.as_ref().map_or(String::new(), |peer| peer.clause(context))
    );
    let code = || {
        let code = match fix {
            CodeFix::BufferOutput => context.output_fix(stream),
            _ => context.code_fix(stream.pid, stream.first_s, (stream.fd, Some(stream.file)), fix),
        };
        format!("{code}{}", context.flush_clause(stream))
    };
    let (command, fix) = match option {
        Some(option) => (None, option),
        None if tiny => (context.coalesce_command(stream), code()),
        None => {
            let knee = Size(context.knee_bytes(stream));
            (context.coalesce_command(stream), format!("blocks of {knee}: {}", code()))
        }
    };
    let (command, command_gain) = command.unzip();
    let finding = context.finding(rule, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding
        .gain(gain)
        .command_gain(command_gain)
        .count("calls", stream.calls)
        .count("bytes", stream.bytes);
    let finding = finding.sampled(context.sampled_site(stream));
    let finding = finding.figure("mean_bytes", stream.mean_bytes()).figure("share", share);
    let finding = finding.figure("own_s", context.around_calls_s(stream));
    let finding = finding.figure("cost_s", context.total_s(stream));
    let finding = match peer {
        Some(peer) => finding.figure("peer_s", peer.saved_s).count("peer", peer.pid.into()),
        None => finding,
    };
    Some(finding.build_with_command(why, command, fix))
}
