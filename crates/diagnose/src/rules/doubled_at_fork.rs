//! doubled-at-fork: bytes pending at fork(2) are written by parent and child.
//!
//! Evidence: a stream of the parent has bytes pending at the fork, and afterwards both the child and the parent
//! write to the same open file beginning with these bytes. Two processes that say the same by themselves have
//! nothing pending at the fork; a child that execs or calls _exit(2) writes nothing of it.

use weir_model::trace::{Buffer, EventKind, SnapshotMoment};
use weir_model::{Finding, Severity};

use crate::context::{Context, Look, Seen, same_beginning};
use crate::fix::Topic;
use crate::rule::Supersedes::{OnPath, OnStream};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, preview};

pub(crate) const RULE: Rule = Rule {
    id: "doubled-at-fork",
    title: "Output appears twice",
    meaning: "bytes pending at fork(2) are written by parent and child",
    position: 80,
    severity: SeverityRule::Effect { least: Severity::High, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnStream("mixed-order"), OnPath("torn-records")],
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let forks = context.recording.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { child } => Some((event.pid, child, event.at_s)),
        _ => None,
    });
    let found = forks.flat_map(|(parent, child, at_s)| {
        let look = before(context, parent, at_s);
        let pending = look.into_iter().flat_map(|look| look.buffers.iter().map(move |buffer| (look, buffer)));
        pending.filter_map(move |(look, buffer)| of_stream(context, &look, buffer, child)).collect::<Vec<_>>()
    });
    found.collect()
}

/// The look at this fork: the parent's last one before it.
fn before<'a>(context: &Context<'a>, parent: u32, at_s: f64) -> Option<Look<'a>> {
    // The look is taken at the entry or the exit of the call; its event may come first.
    let near = |look: &&Look| look.moment == SnapshotMoment::Fork && (at_s - look.at_s).abs() < 0.2;
    let distance = |look: &Look| (at_s - look.at_s).abs();
    let looks = context.looks(parent).iter().filter(near);
    looks.min_by(|a, b| distance(a).total_cmp(&distance(b))).copied()
}

fn of_stream(context: &Context, look: &Look, buffer: &Buffer, child: u32) -> Option<Finding> {
    if buffer.pending_bytes == 0 || buffer.pending.is_empty() || buffer.fd < 0 {
        return None;
    }
    let file = context.file_at(look.pid, buffer.fd, look.at_s);
    let writes = |pid: u32| {
        let same = move |seen: &&Seen| {
            let on_it = seen.call.fd == buffer.fd || (file.is_some() && seen.call.file == file);
            on_it && seen.call.op.writes() && seen.call.result > 0 && seen.at_s >= look.at_s
        };
        let first = context.calls(pid).iter().find(same);
        first.is_some_and(|seen| same_beginning(&seen.call.head, &buffer.pending))
    };
    if file.is_some_and(|file| context.is_null(file)) || !writes(child) || !writes(look.pid) {
        return None;
    }
    let bytes = buffer.pending_bytes;
    let why = format!(
        "{} had {} pending when it forked; it and its child {child} wrote them: {} is there twice.",
        context.name(look.pid),
        count(bytes, "byte"),
        preview(&buffer.pending)
    );
    let code = context.code(look.pid, look.at_s, Topic::FlushBeforeFork);
    let draft = context.draft(&RULE, Severity::High, look.pid, buffer.fd, file);
    let draft = draft.count("doubled_bytes", bytes).figure("at_s", look.at_s).count("child", child.into());
    let draft = draft.wrote(context.recording.write_site(look.pid, buffer.address, look.at_s));
    let run = context.weir_run("--fix-fork", look.pid);
    Some(draft.say(why, format!("{run}   or in code: {code}.")))
}
