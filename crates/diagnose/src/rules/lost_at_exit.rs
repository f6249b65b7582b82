//! lost-at-exit: a process ends by _exit(2), without libc's exit(3), with pending bytes in its buffer.
//!
//! Evidence: the buffer snapshot at exit_group(2). exit(3) has flushed by then, so pending bytes are lost. Not reported: bytes
//! whose write failed (ignored-write-error), and those that another process has since a fork and writes or can still write. A
//! pipe whose reader has gone is info.

use weir_model::trace::{Exit, SnapshotMoment};
use weir_model::{Finding, Severity};

use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext};
use crate::pending_bytes::LostBytes;
use crate::rule::{GainKind, Rule, SeverityRule};

pub(crate) const RULE: Rule = Rule {
    id: "lost-at-exit",
    title: "Output missing after exit",
    meaning: "bytes in a user-space buffer are lost at _exit(2)",
    position: 70,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let at_exit = context
        .all_snapshots()
        .filter(|snapshot| snapshot.moment == SnapshotMoment::Exit && ended_there(context, snapshot));
    at_exit.flat_map(|snapshot| judge_snapshot(context, snapshot)).collect()
}

/// Returns whether the process ended at this snapshot by itself. If a signal ended it, lost-at-kill reports the bytes.
fn ended_there(context: &RuleContext, snapshot: &BufferSnapshot) -> bool {
    let exit = context.process(snapshot.pid).and_then(|process| process.exit);
    let is_last = context.snapshots(snapshot.pid).last().is_some_and(|last| last.at_s <= snapshot.at_s);
    is_last && !matches!(exit, Some(Exit::Signal(_)))
}

fn judge_snapshot(context: &RuleContext, snapshot: BufferSnapshot) -> Vec<Finding> {
    let how = "it ended by _exit(2)";
    let lost = |buffer| {
        let fix = CodeFix::Flush;
        context.lost_finding(&LostBytes { rule: &RULE, snapshot, buffer, how: how.into(), fix })
    };
    snapshot.buffers.iter().filter_map(lost).collect()
}
