//! lost-at-exec: the process became another program with bytes in its buffer.
//!
//! Evidence: the look at the entry of execve(2), which then succeeded. Not meant: a forked child's copy of its
//! parent's bytes, and a child of vfork(2), whose memory is its parent's.

use weir_model::trace::{EventKind, SnapshotMoment};
use weir_model::{Finding, Severity};

use crate::buffers::Lost;
use crate::context::{Context, Look};
use crate::fix::Topic;
use crate::rule::{GainKind, Rule, SeverityRule};

pub(crate) const RULE: Rule = Rule {
    id: "lost-at-exec",
    title: "Output missing after exec",
    meaning: "bytes in a user-space buffer are lost at execve(2)",
    position: 60,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let execs = context.recording.events.iter().filter_map(|event| match event.kind {
        EventKind::Exec { .. } => Some((event.pid, event.at_s)),
        _ => None,
    });
    execs
        .filter_map(|(pid, at_s)| before(context, pid, at_s))
        .flat_map(|look| of_look(context, look))
        .collect()
}

/// The look at this exec's entry: the last of the process before it.
fn before<'a>(context: &Context<'a>, pid: u32, at_s: f64) -> Option<Look<'a>> {
    let look = context.looks(pid).iter().rfind(|look| look.at_s <= at_s)?;
    let image = context.process(pid)?.images.iter().rfind(|image| image.started_s < at_s);
    let same = image.is_none_or(|image| image.started_s <= look.at_s);
    (look.moment == SnapshotMoment::Exec && same).then_some(*look)
}

fn of_look(context: &Context, look: Look) -> Vec<Finding> {
    let how = "it became another program by execve(2)";
    let lost = |buffer| {
        context.lost(&Lost { rule: &RULE, look, buffer, how: how.into(), topic: Topic::FlushBeforeFork })
    };
    look.buffers.iter().filter_map(lost).collect()
}
