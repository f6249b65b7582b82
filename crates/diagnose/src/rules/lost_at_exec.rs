//! lost-at-exec: a process executes another program with pending bytes in its buffer.
//!
//! Evidence: the buffer snapshot at the entry of an execve(2) that succeeded. Not reported: a forked child's copy of its
//! parent's bytes, and a child of vfork(2), which shares its parent's memory.

use weir_model::trace::{EventKind, SnapshotMoment};
use weir_model::{Finding, Severity};

use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext};
use crate::pending_bytes::LostBytes;
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

fn judge(context: &RuleContext) -> Vec<Finding> {
    let execs = context.recording.events.iter().filter_map(|event| match event.kind {
        EventKind::Exec { .. } => Some((event.pid, event.at_s)),
        _ => None,
    });
    execs
        .filter_map(|(pid, at_s)| snapshot_at_exec(context, pid, at_s))
        .flat_map(|snapshot| judge_snapshot(context, snapshot))
        .collect()
}

/// Returns the snapshot at the entry of an execve(2): the last one of the process and its image before the exec event.
fn snapshot_at_exec<'a>(context: &RuleContext<'a>, pid: u32, at_s: f64) -> Option<BufferSnapshot<'a>> {
    let snapshot = context.snapshots(pid).iter().rfind(|snapshot| snapshot.at_s <= at_s)?;
    let image = context.process(pid)?.images.iter().rfind(|image| image.started_s < at_s);
    let same_image = image.is_none_or(|image| image.started_s <= snapshot.at_s);
    (snapshot.moment == SnapshotMoment::Exec && same_image).then_some(*snapshot)
}

fn judge_snapshot(context: &RuleContext, snapshot: BufferSnapshot) -> Vec<Finding> {
    let how = "it became another program by execve(2)";
    let lost = |buffer| {
        let fix = CodeFix::FlushBeforeFork;
        context.lost_finding(&LostBytes { rule: &RULE, snapshot, buffer, how: how.into(), fix })
    };
    snapshot.buffers.iter().filter_map(lost).collect()
}
