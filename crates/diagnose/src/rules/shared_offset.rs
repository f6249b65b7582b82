//! shared-offset: processes share one file offset and move it under each other.
//!
//! Evidence: two processes take turns in calls that use the offset of one open regular file, with lseek(2) by both; or one
//! process seeks to a stated offset, and then another one writes there without a seek of its own, or the other one of a parent
//! and its child, which run the same program, reads there. Not reported: programs that read a shared input one after the other,
//! an lseek(2) backwards that gives unused bytes back, appends to one log, and calls with an offset argument.

use weir_model::trace::{Op, OpenFile};
use weir_model::{Finding, Severity, StreamKind};

use crate::call_patterns::moves_offset;
use crate::context::{RuleContext, TimedCall};
use crate::flags::{SEEK_END, SEEK_SET};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::thousands;

pub(crate) const RULE: Rule = Rule {
    id: "shared-offset",
    title: "Reads and writes at a wrong offset",
    meaning: "processes share one file offset and move it under each other",
    position: 130,
    severity: SeverityRule::Effect { least: Severity::High, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let files = context.recording.files.iter().filter(|file| file.kind == StreamKind::File);
    files.filter_map(|file| judge_file(context, file)).collect()
}

fn judge_file(context: &RuleContext, file: &OpenFile) -> Option<Finding> {
    let calls = context.calls_on(file.id);
    let several = |calls: &[TimedCall]| calls.iter().any(|timed| timed.pid != calls[0].pid);
    // Checked first: hardly one of a build's thousands of files is open in two processes.
    if !several(calls) {
        return None;
    }
    let moves: Vec<TimedCall> = calls.iter().copied().filter(uses_offset).collect();
    if !several(&moves) {
        return None;
    }
    let pair = take_turns(&moves).or_else(|| overwrite(file, &moves));
    let (one, other) = pair.or_else(|| move_for_relative(context, &moves))?;
    Some(finding(context, file, &one, &other))
}

fn uses_offset(timed: &TimedCall) -> bool {
    let call = timed.call;
    let uses = call.op.reads() || call.op.writes() || moves_offset(call);
    call.result >= 0 && call.op.offset_argument(&call.args).is_none() && uses
}

fn is_absolute_seek(timed: &TimedCall) -> bool {
    timed.call.op == Op::Lseek && timed.call.args[2] == SEEK_SET
}

/// Returns the calls of two processes that both seek to stated offsets and alternate twice.
fn take_turns<'a>(moves: &[TimedCall<'a>]) -> Option<(TimedCall<'a>, TimedCall<'a>)> {
    let mut order = moves.to_vec();
    order.dedup_by_key(|timed| timed.pid);
    let seeks = |pid: u32| moves.iter().any(|timed| timed.pid == pid && is_absolute_seek(timed));
    let alternates = |w: &[TimedCall]| w[0].pid == w[2].pid && w[1].pid == w[3].pid;
    let mut alternating = order.windows(4).filter(|w| alternates(w) && seeks(w[0].pid) && seeks(w[1].pid));
    alternating.next().map(|w| (w[0], w[1]))
}

/// Returns the call of a process that seeks to a stated offset, and that of another one that wrote before and then writes there
/// without a seek.
fn overwrite<'a>(file: &OpenFile, moves: &[TimedCall<'a>]) -> Option<(TimedCall<'a>, TimedCall<'a>)> {
    if file.appends() {
        return None;
    }
    for (index, seek) in moves.iter().enumerate().filter(|(_, timed)| is_absolute_seek(timed)) {
        let wrote_before =
            |pid: u32| moves[..index].iter().any(|timed| timed.pid == pid && timed.call.op.writes());
        let next = moves[index + 1..].iter().find(|timed| timed.pid != seek.pid);
        if let Some(next) = next.filter(|next| next.call.op.writes() && wrote_before(next.pid)) {
            return Some((*seek, *next));
        }
    }
    None
}

/// Returns the calls of a parent and its child, in either order, of which one seeks to a stated offset and the other then reads
/// there without a seek. Both run the same program: a child that executed another one may have got the offset on purpose.
fn move_for_relative<'a>(
    context: &RuleContext,
    moves: &[TimedCall<'a>],
) -> Option<(TimedCall<'a>, TimedCall<'a>)> {
    let moves_away = |timed: &TimedCall| {
        let stated = matches!(timed.call.args[2], SEEK_SET | SEEK_END);
        timed.call.op == Op::Lseek && stated && timed.call.result > 0
    };
    for (index, seek) in moves.iter().enumerate().filter(|(_, timed)| moves_away(timed)) {
        let next = moves.get(index + 1).filter(|next| next.pid != seek.pid && next.call.op.reads());
        if let Some(next) = next.filter(|next| run_one_program(context, seek.pid, next.pid)) {
            return Some((*seek, *next));
        }
    }
    None
}

/// Returns whether two processes are parent and child without an execve(2) since the fork.
fn run_one_program(context: &RuleContext, one: u32, other: u32) -> bool {
    let is_child_of = |child: u32, parent: u32| {
        let process = context.process(child);
        process.is_some_and(|process| process.parent == Some(parent) && process.images.len() == 1)
    };
    is_child_of(one, other) || is_child_of(other, one)
}

fn finding(context: &RuleContext, file: &OpenFile, one: &TimedCall, other: &TimedCall) -> Finding {
    let seeks: u64 = context.streams_on(file.id).iter().map(|stream| stream.seeks).sum();
    let why = format!(
        "{} and {} share one file offset, because the file was opened before the fork, and each moves it for \
            the other ({} seeks).",
        context.name_at(one.pid, one.at_s),
        context.name_at(other.pid, other.at_s),
        thousands(seeks)
    );
    let fix = "open the file again in the child, or use pread(2) and pwrite(2), which take the offset as an \
        argument.";
    let finding = context.finding(&RULE, Severity::High, one.pid, one.call.fd, Some(file.id));
    finding.count("seeks", seeks).count("other", other.pid.into()).build(why, fix)
}
