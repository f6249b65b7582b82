//! tiny-writes: many write calls of a few bytes each.
//!
//! Evidence: most calls of a stream move less than 256 bytes, or all are smaller than pays on this machine, and gathering them
//! would save time. Not reported, because they cannot be gathered or another rule is about them: lines (line-buffered-bulk), writes at scattered positions, writes that
//! wait for the device (sync-tiny-writes, sync-every-write), commands to devices, and requests to a peer that answers each.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{
    is_below_knee, is_line_by_line, is_synchronous, is_tiny, moving_calls, straddles_blocks,
};
use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule, VerdictForm};
use crate::small_calls;

pub(crate) const RULE: Rule = Rule {
    id: "tiny-writes",
    title: "Slow output, too few bytes with each call",
    meaning: "many write calls that cost more than their bytes",
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

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.merged_streams(Direction::Out, |stream| applies(context, stream));
    streams
        .filter_map(|stream| small_calls::finding(context, stream, &RULE, "wrote", CodeFix::BufferOutput))
        .collect()
}

fn applies(context: &RuleContext, stream: &StreamCounts) -> bool {
    let moving = moving_calls(stream);
    let small = is_tiny(stream) || is_below_knee(context, stream) && !straddles_blocks(context, stream);
    let kind = context.kind(stream.file);
    let is_command = kind == StreamKind::Device && !context.is_passive_device(stream.file);
    moving >= 100
        && small
        && kind != StreamKind::Other
        && !is_command
        && stream.jumps * 2 < stream.calls
        && !is_line_by_line(stream)
        && !is_synchronous(context, stream)
        && stream.syncs * 2 < moving
        && !is_answered(context, stream)
}

/// Returns whether the peer answers about every other write or more.
fn is_answered(context: &RuleContext, stream: &StreamCounts) -> bool {
    match context.kind(stream.file) {
        StreamKind::Socket => {
            let is_input =
                |other: &&&StreamCounts| other.direction == Direction::In && other.file == stream.file;
            let input = context.streams_of(stream.pid).iter().find(is_input);
            input.is_some_and(|input| input.calls * 2 >= stream.calls)
        }
        StreamKind::Pipe => answers_by_pipe(context, stream) * 2 >= stream.calls,
        _ => false,
    }
}

/// Returns the number of writes by which the readers of a pipe answer through another pipe.
fn answers_by_pipe(context: &RuleContext, stream: &StreamCounts) -> u64 {
    let key = context.target_key(stream.file);
    let readers = context.streams(Direction::In).filter(|other| context.target_key(other.file) == key);
    let peers: Vec<u32> = readers.map(|other| other.pid).filter(|&pid| pid != stream.pid).collect();
    let answers = peers.iter().flat_map(|&peer| context.streams_of(peer)).filter(|answer| {
        let key = context.target_key(answer.file);
        let reads_answer =
            |own: &&StreamCounts| own.direction == Direction::In && context.target_key(own.file) == key;
        let own = context.streams_of(stream.pid);
        answer.direction == Direction::Out && own.iter().any(reads_answer)
    });
    answers.map(|answer| answer.calls).sum()
}
