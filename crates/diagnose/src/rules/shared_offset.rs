//! shared-offset: processes share one file offset and move it under each other.
//!
//! Evidence: calls that use the offset of one open regular file by two processes that take turns, with an
//! lseek(2) among them; or an lseek(2) to a stated place by one process, after which another one writes where
//! it did not mean to, or the other of a parent and its child that are one program reads. Not meant: programs that read a shared input one after the other, an lseek(2) backwards
//! that gives back what was not used, appending to one log, and calls with an offset of their own.

use weir_model::trace::{Op, OpenFile};
use weir_model::{Finding, Severity, StreamKind};

use crate::context::{Context, Seen};
use crate::flags::{O_APPEND, SEEK_CUR, SEEK_END, SEEK_SET};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::thousands;

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

fn judge(context: &Context) -> Vec<Finding> {
    let files = context.recording.files.iter().filter(|file| file.kind == StreamKind::File);
    files.filter_map(|file| of_file(context, file)).collect()
}

fn of_file(context: &Context, file: &OpenFile) -> Option<Finding> {
    let calls = context.calls_on(file.id);
    let several = |calls: &[Seen]| calls.iter().any(|seen| seen.pid != calls[0].pid);
    // First: of a build's thousands of files hardly one is open in two processes.
    if !several(calls) {
        return None;
    }
    let moves: Vec<Seen> = calls.iter().copied().filter(uses_offset).collect();
    if !several(&moves) {
        return None;
    }
    let (one, other) =
        turns(&moves).or_else(|| overwritten(file, &moves)).or_else(|| moved(context, &moves))?;
    Some(found(context, file, &moves, one, other))
}

fn uses_offset(seen: &Seen) -> bool {
    let call = seen.call;
    let asks_only = call.op == Op::Lseek && call.args[1] == 0 && call.args[2] == SEEK_CUR;
    let uses = call.op.reads() || call.op.writes() || call.op == Op::Lseek && !asks_only;
    call.result >= 0 && !call.op.positioned() && uses
}

fn seeks_to(seen: &Seen) -> bool {
    seen.call.op == Op::Lseek && seen.call.args[2] == SEEK_SET
}

/// Two processes that both seek to stated places and take turns: one, the other, one, the other.
fn turns(moves: &[Seen]) -> Option<(u32, u32)> {
    let mut order: Vec<u32> = moves.iter().map(|seen| seen.pid).collect();
    order.dedup();
    let seeks = |pid: u32| moves.iter().any(|seen| seen.pid == pid && seeks_to(seen));
    let mut found = order.windows(4).filter(|w| w[0] == w[2] && w[1] == w[3] && seeks(w[0]) && seeks(w[1]));
    found.next().map(|w| (w[0], w[1]))
}

/// A process that seeks to a stated place, and another that then writes there without a seek of its own.
fn overwritten(file: &OpenFile, moves: &[Seen]) -> Option<(u32, u32)> {
    if file.flags & O_APPEND != 0 {
        return None;
    }
    for (index, seek) in moves.iter().enumerate().filter(|(_, seen)| seeks_to(seen)) {
        let wrote_before =
            |pid: u32| moves[..index].iter().any(|seen| seen.pid == pid && seen.call.op.writes());
        let next = moves[index + 1..].iter().find(|seen| seen.pid != seek.pid);
        if let Some(next) = next.filter(|next| next.call.op.writes() && wrote_before(next.pid)) {
            return Some((seek.pid, next.pid));
        }
    }
    None
}

/// One of a parent and its child, both still the same program, seeks somewhere, and the other reads there without a
/// seek of its own. A child that became another program may have been given the place on purpose.
fn moved(context: &Context, moves: &[Seen]) -> Option<(u32, u32)> {
    let somewhere = |seen: &Seen| {
        seen.call.op == Op::Lseek && matches!(seen.call.args[2], SEEK_SET | SEEK_END) && seen.call.result > 0
    };
    for (index, seek) in moves.iter().enumerate().filter(|(_, seen)| somewhere(seen)) {
        let next = moves.get(index + 1).filter(|next| next.pid != seek.pid && next.call.op.reads());
        if let Some(next) = next.filter(|next| one_program(context, seek.pid, next.pid)) {
            return Some((seek.pid, next.pid));
        }
    }
    None
}

/// Are they parent and child without an execve(2) since the fork?
fn one_program(context: &Context, one: u32, other: u32) -> bool {
    let child_of = |child: u32, parent: u32| {
        let process = context.process(child);
        process.is_some_and(|process| process.parent == Some(parent) && process.images.len() == 1)
    };
    child_of(one, other) || child_of(other, one)
}

fn found(context: &Context, file: &OpenFile, moves: &[Seen], one: u32, other: u32) -> Finding {
    let fd = moves.iter().find(|seen| seen.pid == one).map_or(-1, |seen| seen.call.fd);
    let seeks: u64 = context.flows_on(file.id).iter().map(|flow| flow.seeks).sum();
    let why = format!(
        "{} and {} have one offset in common, since the file was opened before the fork, and each moves \
            it under the other ({} seeks).",
        context.name(one),
        context.name(other),
        thousands(seeks)
    );
    let fix = "open the file again in the child, or use pread(2) and pwrite(2), which have an offset of \
        their own.";
    let draft = context.draft(&RULE, Severity::High, one, fd, Some(file.id));
    draft.count("seeks", seeks).count("other", other.into()).say(why, fix)
}
