//! double-buffered: a process in between that only copies: from a file into a pipe, or from a pipe into a file.
//!
//! Evidence: all it reads is all it writes, in turns, and the beginnings that were seen are the same; the other
//! side of the pipe is a program of this run, which could have the file itself. Not meant: several files
//! joined into one stream, bytes that are changed, tee. Never High: somebody may want to look on.

use weir_model::{Direction, Finding, FindingId, Gain, Severity, StreamKind};

use super::Rule;
use crate::context::Context;
use crate::passing::Pass;
use crate::words::count;

pub(crate) const RULE: Rule = Rule { id: FindingId::DoubleBuffered, judge };

fn judge(context: &Context) -> Vec<Finding> {
    let out = context.passes(StreamKind::File, StreamKind::Pipe).into_iter().filter_map(|pass| {
        let peer = peer(context, pass.output.file, pass.output.pid, Direction::In)?;
        found(
            context,
            pass,
            peer,
            format!(
                "let {} read the file itself: COMMAND < \
            {}",
                context.name(peer),
                path(context, pass.input.file)
            ),
        )
    });
    let into = context.passes(StreamKind::Pipe, StreamKind::File).into_iter().filter_map(|pass| {
        let peer = peer(context, pass.input.file, pass.input.pid, Direction::Out)?;
        found(
            context,
            pass,
            peer,
            format!(
                "let {} write the file itself: COMMAND > \
            {}",
                context.name(peer),
                path(context, pass.output.file)
            ),
        )
    });
    out.chain(into).collect()
}

/// The process at the other end of a pipe, if there is exactly one.
fn peer(context: &Context, pipe: u32, pid: u32, direction: Direction) -> Option<u32> {
    let target = context.target(pipe);
    let others = context.toward(direction).filter(|flow| flow.pid != pid && flow.bytes > 0);
    let mut ends: Vec<u32> =
        others.filter(|flow| context.target(flow.file) == target).map(|flow| flow.pid).collect();
    ends.dedup();
    if let [one] = ends[..] { Some(one) } else { None }
}

fn path(context: &Context, file: u32) -> String {
    context.file(file).map_or("FILE".into(), |file| crate::words::quoted(&file.path))
}

fn found(context: &Context, pass: Pass, peer: u32, fix: String) -> Option<Finding> {
    let (input, output) = (pass.input, pass.output);
    let cost_s = context.at_most_cpu(input.pid, context.flow_s(input) + context.flow_s(output));
    let severity = context.severity(cost_s)?.min(Severity::Warn);
    let why = format!(
        "{} does nothing but copy {} between a file and the pipe of {}: each byte crosses two more buffers.",
        context.name(input.pid),
        count(input.bytes, "byte"),
        context.name(peer)
    );
    let draft = context.draft(RULE.id, severity, input.pid, output.fd, Some(output.file));
    let draft =
        draft.count("bytes", input.bytes).count("calls", input.calls + output.calls).figure("cost_s", cost_s);
    let gain = Gain { elapsed_s: cost_s, calls: input.calls + output.calls };
    Some(draft.count("peer", peer.into()).gain(gain).say(why, format!("{fix}.")))
}
