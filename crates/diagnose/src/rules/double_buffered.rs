//! double-buffered: a process only copies bytes from a file into a pipe, or from a pipe into a file.
//!
//! Evidence: the process writes exactly what it reads, in turns, with equal recorded beginnings; and the process at the other
//! end of the pipe is in the recording and could use the file itself. Not reported: several files joined into one stream,
//! changed bytes, tee, and a process that gathers small pieces for a file, where they cost more than in a pipe. The severity
//! is at most warn, because a pipeline may be meant to stay as it is.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::context::RuleContext;
use crate::pass_through::PassThrough;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::count;
use weir_model::shell_quoted;

pub(crate) const RULE: Rule = Rule {
    id: "double-buffered",
    title: "Needless copying process",
    meaning: "a process only copies bytes between a file and a pipe",
    position: 220,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::CpuTime,
    supersedes: &[OnStream("small-pipe")],
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let from_file =
        context.pass_throughs(StreamKind::File, StreamKind::Pipe).into_iter().filter_map(|copy| {
            let peer = only_peer(context, copy.output.file, copy.output.pid, Direction::In)?;
            if copy.has_unassigned() && !context.may_have_moved(peer, copy.bytes) {
                return None;
            }
            let calls_s = |stream| copy.whole(stream, context.calls_s(stream));
            let cost_s = calls_s(copy.input) + calls_s(copy.output) + peer_saves_s(context, &copy);
            let (name, path) = (context.stream_name(peer), path(context, copy.input.file));
            let fix = format!("let {name} read the file itself: COMMAND < {path}.");
            finding(context, copy, peer, cost_s, fix)
        });
    let to_file = context.pass_throughs(StreamKind::Pipe, StreamKind::File).into_iter().filter_map(|copy| {
        let peer = only_peer(context, copy.input.file, copy.input.pid, Direction::Out)?;
        let (name, path) = (context.stream_name(peer), path(context, copy.output.file));
        let fix = format!("let {name} write the file itself: COMMAND > {path}.");
        finding(context, copy, peer, to_file_s(context, &copy, peer), fix)
    });
    from_file.chain(to_file).collect()
}

/// Returns the stream at the other end of a pipe, or None if there is not exactly one process.
fn only_peer<'a>(
    context: &RuleContext<'a>,
    pipe: u32,
    pid: u32,
    direction: Direction,
) -> Option<&'a StreamCounts> {
    let key = context.target_key(pipe);
    let others = context.streams(direction).filter(|stream| stream.pid != pid && stream.bytes > 0);
    let mut ends: Vec<&StreamCounts> =
        others.filter(|stream| context.target_key(stream.file) == key).collect();
    ends.dedup_by_key(|stream| stream.pid);
    if let [one] = ends[..] { Some(one) } else { None }
}

/// Returns the seconds that the process at the other end saves if it reads the bytes from the file.
fn peer_saves_s(context: &RuleContext, copy: &PassThrough) -> f64 {
    let prices = &context.recording.prices;
    let byte_ns = prices.large_byte_ns(StreamKind::Pipe) - prices.large_byte_ns(StreamKind::File);
    byte_ns.max(0.0) * copy.bytes as f64 / 1e9
}

/// Returns the seconds of the pipe's two sides and of the copier's writes, less those of the writer's own calls on the file.
fn to_file_s(context: &RuleContext, copy: &PassThrough, writer: &StreamCounts) -> f64 {
    let prices = &context.recording.prices;
    let pipe_s = prices.transfer_s(StreamKind::Pipe, true, writer.calls, writer.bytes)
        + prices.transfer_s(StreamKind::Pipe, false, copy.input.calls, copy.input.bytes);
    let file_s = |stream: &StreamCounts| stream.calls as f64 * prices.append_ns(stream.mean_bytes()) / 1e9;
    pipe_s + file_s(copy.output) - file_s(writer)
}

fn path(context: &RuleContext, file: u32) -> String {
    context.file(file).map_or("FILE".into(), |file| shell_quoted(file.path.exact()))
}

fn finding(
    context: &RuleContext,
    copy: PassThrough,
    peer: &StreamCounts,
    cost_s: f64,
    fix: String,
) -> Option<Finding> {
    let (input, output) = (copy.input, copy.output);
    let severity = RULE.severity_of(context, input.pid, cost_s)?;
    let why = format!(
        "{} only copies {} between a file and the pipe of {}: each byte crosses two more buffers.",
        context.stream_name(input),
        count(copy.bytes, "byte"),
        context.stream_name(peer)
    );
    let calls =
        [input, output].iter().map(|stream| copy.whole(stream, stream.calls as f64).round() as u64).sum();
    let finding = context.finding(&RULE, severity, input.pid, output.fd, Some(output.file));
    let finding = finding.count("bytes", copy.bytes).count("calls", calls).figure("cost_s", cost_s);
    Some(finding.count("peer", peer.pid.into()).gain(Gain { elapsed_s: cost_s, calls }).build(why, fix))
}
