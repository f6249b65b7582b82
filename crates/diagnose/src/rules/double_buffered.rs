//! double-buffered: a process in between that only copies: from a file into a pipe, or from a pipe into a file.
//!
//! Evidence: all it reads is all it writes, in turns, and the beginnings that were seen are the same; the other
//! side of the pipe is a program of this run, which could have the file itself. Not meant: several files
//! joined into one stream, bytes that are changed, tee; nor who gathers small pieces in front of a file, which are dearer
//! there than in a pipe. Never High: somebody may want to look on.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::context::Context;
use crate::passing::Pass;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::count;

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

/// What a pipe holds if nobody says otherwise: when so much has gone in, one side sleeps and the other wakes …
const PIPE: f64 = 65_536.0;

/// … which takes about this each time (measured: 2 to 3 µs).
const SWITCH_NS: f64 = 2000.0;

fn judge(context: &Context) -> Vec<Finding> {
    let out = context.passes(StreamKind::File, StreamKind::Pipe).into_iter().filter_map(|pass| {
        let peer = peer(context, pass.output.file, pass.output.pid, Direction::In)?;
        let cost_s = context.flow_s(pass.input) + context.flow_s(pass.output) + switches_s(&pass);
        let fix = format!(
            "let {} read the file itself: COMMAND < {}",
            context.name(peer.pid),
            path(context, pass.input.file)
        );
        found(context, pass, peer.pid, cost_s, fix)
    });
    let into = context.passes(StreamKind::Pipe, StreamKind::File).into_iter().filter_map(|pass| {
        let peer = peer(context, pass.input.file, pass.input.pid, Direction::Out)?;
        let fix = format!(
            "let {} write the file itself: COMMAND > {}",
            context.name(peer.pid),
            path(context, pass.output.file)
        );
        found(context, pass, peer.pid, into_file_s(context, &pass, peer), fix)
    });
    out.chain(into).collect()
}

/// The process at the other end of a pipe, if there is exactly one.
fn peer<'a>(context: &Context<'a>, pipe: u32, pid: u32, direction: Direction) -> Option<&'a StreamCounts> {
    let target = context.target(pipe);
    let others = context.toward(direction).filter(|flow| flow.pid != pid && flow.bytes > 0);
    let mut ends: Vec<&StreamCounts> = others.filter(|flow| context.target(flow.file) == target).collect();
    ends.dedup_by_key(|flow| flow.pid);
    if let [one] = ends[..] { Some(one) } else { None }
}

/// What the two sides of the pipe take to wait for each other.
fn switches_s(pass: &Pass) -> f64 {
    2.0 * SWITCH_NS / 1e9 * pass.input.bytes as f64 / PIPE
}

/// The pipe's two sides and the copier's writes, less what the writer's own writes would take on the file.
fn into_file_s(context: &Context, pass: &Pass, writer: &StreamCounts) -> f64 {
    let prices = &context.recording.prices;
    let piped_s = prices.transfer_s(StreamKind::Pipe, true, writer.calls, writer.bytes)
        + prices.transfer_s(StreamKind::Pipe, false, pass.input.calls, pass.input.bytes);
    let filed_s = |flow: &StreamCounts| flow.calls as f64 * prices.append_ns(flow.mean_bytes()) / 1e9;
    piped_s + switches_s(pass) + filed_s(pass.output) - filed_s(writer)
}

fn path(context: &Context, file: u32) -> String {
    context.file(file).map_or("FILE".into(), |file| crate::words::quoted(&file.path))
}

fn found(context: &Context, pass: Pass, peer: u32, cost_s: f64, fix: String) -> Option<Finding> {
    let (input, output) = (pass.input, pass.output);
    let severity = RULE.severity_of(context, cost_s)?;
    let why = format!(
        "{} does nothing but copy {} between a file and the pipe of {}: each byte crosses two more buffers.",
        context.name(input.pid),
        count(input.bytes, "byte"),
        context.name(peer)
    );
    let draft = context.draft(&RULE, severity, input.pid, output.fd, Some(output.file));
    let draft =
        draft.count("bytes", input.bytes).count("calls", input.calls + output.calls).figure("cost_s", cost_s);
    let gain = Gain { elapsed_s: cost_s, calls: input.calls + output.calls };
    Some(draft.count("peer", peer.into()).gain(gain).say(why, format!("{fix}.")))
}
