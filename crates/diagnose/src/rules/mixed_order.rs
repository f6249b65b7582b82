//! mixed-order: buffered and direct output to one file arrive in another order than they were made.
//!
//! Evidence: bytes of a stream are pending at a look; then the program, or a child it started then, writes
//! other bytes to the same open file, or to another opening of the same file, by whatever name, if both append; only
//! then do the pending ones go out (a write that begins with them, or a later look where they still wait). Without a look
//! nobody knows when the bytes were made: no finding. Nor where a look before the other write has something else in the
//! buffer: they had left with a call that nobody saw.

use weir_model::trace::Buffer;
use weir_model::{Finding, Severity};

use crate::context::{Context, Look, Seen, same_beginning};
use crate::fix::Topic;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, preview};

pub(crate) const RULE: Rule = Rule {
    id: "mixed-order",
    title: "Output in the wrong order",
    meaning: "buffered and direct output to one file arrive out of order",
    position: 110,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for look in context.all_looks() {
        for buffer in look.buffers.iter().filter(|buffer| context.own_pending(&look, buffer) > 0) {
            let known = found.iter().any(|one| (one.pid, one.fd) == (look.pid, buffer.fd));
            if !known && !buffer.pending.is_empty() {
                found.extend(of_stream(context, &look, buffer));
            }
        }
    }
    found
}

fn of_stream(context: &Context, look: &Look, buffer: &Buffer) -> Option<Finding> {
    let file = context.file_at(look.pid, buffer.fd, look.at_s).filter(|&file| !context.is_null(file))?;
    let calls = context.calls_in_turn(file);
    let mut after = calls.iter().filter(|seen| {
        seen.at_s >= look.at_s && seen.call.op.writes() && seen.call.result > 0 && !seen.call.head.is_empty()
    });
    let overtaking = after.find(|seen| !same_beginning(&seen.call.head, &buffer.pending))?;
    let before_it = calls.iter().any(|seen| {
        let between = seen.at_s >= look.at_s && seen.at_s < overtaking.at_s;
        between && seen.call.op.writes() && same_beginning(&seen.call.head, &buffer.pending)
    });
    if before_it
        || had_left(context, look, buffer, overtaking.at_s)
        || !by_family(context, look, overtaking)
        || !leaves_later(context, look, buffer, &calls, overtaking.at_s)
    {
        return None;
    }
    Some(found(context, look, buffer, file, overtaking))
}

/// Whether the buffer was seen without the pending bytes before that time.
fn had_left(context: &Context, look: &Look, buffer: &Buffer, at_s: f64) -> bool {
    let between = context.looks(look.pid).iter().filter(|later| later.at_s > look.at_s && later.at_s <= at_s);
    let mut same = between.flat_map(|later| later.buffers).filter(|other| other.address == buffer.address);
    same.any(|other| {
        other.pending_bytes < buffer.pending_bytes || !same_beginning(&other.pending, &buffer.pending)
    })
}

/// Whether the overtaking write is the program's own, or its child's that it started meanwhile.
fn by_family(context: &Context, look: &Look, overtaking: &Seen) -> bool {
    // fork(2) may have returned in the child before the look's own time was taken.
    let started_then = || context.forked_at(overtaking.pid) >= look.at_s - 0.05;
    overtaking.pid == look.pid || context.descends(overtaking.pid, look.pid) && started_then()
}

/// Whether the pending bytes were written, or still waited, after that time.
fn leaves_later(context: &Context, look: &Look, buffer: &Buffer, calls: &[Seen], at_s: f64) -> bool {
    let written = calls.iter().any(|seen| {
        let by_owner = seen.pid == look.pid && seen.at_s > at_s && seen.call.op.writes();
        by_owner && same_beginning(&seen.call.head, &buffer.pending)
    });
    let waits = || {
        let later = context.looks(look.pid).iter().filter(|later| later.at_s > at_s);
        let streams = later.flat_map(|later| later.buffers).filter(|other| other.address == buffer.address);
        let mut same = streams.filter(|other| {
            other.pending_bytes >= buffer.pending_bytes && same_beginning(&other.pending, &buffer.pending)
        });
        same.next().is_some()
    };
    written || waits()
}

fn found(context: &Context, look: &Look, buffer: &Buffer, file: u32, overtaking: &Seen) -> Finding {
    let call = overtaking.call;
    // Messages on standard error are meant to come at once, also into a shared log.
    let severity = if call.fd == 2 && buffer.fd != 2 { Severity::Warn } else { Severity::High };
    let who = if overtaking.pid == look.pid { "a direct write".into() } else { context.name(overtaking.pid) };
    let why = format!(
        "{} of {} ({}) were still in its buffer when {who} put {} in front of them.",
        count(buffer.pending_bytes, "byte"),
        context.name(look.pid),
        preview(&buffer.pending),
        preview(&call.head)
    );
    let code = context.code(look.pid, look.at_s, Topic::FlushBeforeFork);
    let fix = if overtaking.pid == look.pid {
        "write everything through the one stream, or flush it before each direct write".into()
    } else {
        code
    };
    let draft = context.draft(&RULE, severity, look.pid, buffer.fd, Some(file));
    let draft =
        draft.count("overtaken_bytes", buffer.pending_bytes).count("overtaking_bytes", call.result as u64);
    let own = overtaking.pid == look.pid;
    let run = context.weir_run(if own { "--fix-order" } else { "--line" }, look.pid);
    // Of two openings `weir run` keeps no order: each is a stream of its own to it.
    let one_opening = call.file == Some(file);
    let fix = if one_opening { format!("{run}   or in code: {fix}.") } else { format!("{fix}.") };
    draft.figure("at_s", overtaking.at_s).say(why, fix)
}
