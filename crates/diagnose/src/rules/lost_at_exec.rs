//! lost-at-exec: a process executes another program with pending bytes in its buffer.
//!
//! Evidence: the last buffer snapshot at an execve(2) that succeeded, with no write after it. Not reported: bytes that
//! another process has since a fork and writes or can still write, and a child of vfork(2), which shares its parent's memory.

use weir_model::trace::{Buffer, EventKind, SnapshotMoment};
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
    execs.flat_map(|(pid, at_s)| judge_exec(context, pid, at_s)).collect()
}

fn judge_exec(context: &RuleContext, pid: u32, at_s: f64) -> Vec<Finding> {
    let how = "it became another program by execve(2)";
    let lost = last_buffers(context, pid, at_s).into_iter().filter_map(|(snapshot, buffer)| {
        if context.wrote_between(pid, buffer.fd, snapshot.at_s, at_s) {
            return None; // another thread wrote on, perhaps these bytes
        }
        let fix = CodeFix::FlushBeforeFork;
        context.lost_finding(&LostBytes { rule: &RULE, snapshot, buffer, how: how.into(), fix })
    });
    lost.collect()
}

/// Returns each buffer as the last snapshot before an execve(2) shows it that was taken for the call: at its entry, or at the
/// end of the other threads, which run until the call ends them. An earlier call of the image may have failed.
fn last_buffers<'a>(context: &RuleContext<'a>, pid: u32, at_s: f64) -> Vec<(BufferSnapshot<'a>, &'a Buffer)> {
    let image =
        context.process(pid).and_then(|process| process.images.iter().rfind(|image| image.started_s < at_s));
    let since_s = image.map_or(0.0, |image| image.started_s);
    let snapshots = context.snapshots(pid);
    let before = &snapshots[..snapshots.partition_point(|snapshot| snapshot.at_s <= at_s)];
    // The samples of other threads come between.
    let is_at_exec =
        |snapshot: &&BufferSnapshot| snapshot.moment == SnapshotMoment::Exec && snapshot.at_s >= since_s;
    let at_exec = before.iter().rev().filter(is_at_exec);
    let mut found: Vec<(BufferSnapshot, &Buffer)> = Vec::new();
    for snapshot in at_exec {
        for buffer in snapshot.buffers {
            if found.iter().all(|(_, other)| other.address != buffer.address) {
                found.push((*snapshot, buffer));
            }
        }
    }
    found
}
