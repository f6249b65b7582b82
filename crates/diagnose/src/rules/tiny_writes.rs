//! tiny-writes: many write calls of a few bytes each.
//!
//! Evidence: most calls of a stream move less than 256 bytes, or all are smaller than pays on this machine, and gathering them
//! would save time. Not reported, because they cannot be gathered or another rule is about them: lines (line-buffered-bulk),
//! writes at scattered positions, writes that wait for the device (sync-tiny-writes, sync-every-write), commands to devices,
//! requests to a peer that answers each, and pieces that are passed on as they arrive.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::{is_below_knee, is_line_by_line, is_synchronous, is_tiny, straddles_blocks};
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
    let moving = stream.moving_calls();
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
        && !context.is_answered(stream)
        && !context.passes_on(stream)
}
