//! lost-at-kill: a signal ends a process with pending bytes in its buffer.
//!
//! Evidence: the buffer snapshot at the signal, or the last snapshot of that buffer before it, with no write after. CPython
//! removes the bytes of a flush from the stream before it writes them: those that its last write did not write are lost too.
//! Not reported: the pipe that raised SIGPIPE, whose reader has gone, and bytes that another process has since a fork and
//! writes or can still write.

use weir_model::trace::{Buffer, Exit, RuntimeId, SnapshotMoment};
use weir_model::{Finding, Severity, StreamKind};

use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext};
use crate::pending_bytes::LostBytes;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::signal_name;

pub(crate) const RULE: Rule = Rule {
    id: "lost-at-kill",
    title: "Last output missing after a kill",
    meaning: "bytes in a user-space buffer are lost when a signal ends the process",
    position: 50,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnStream("stuck-output")],
    judge,
    ..Rule::DEFAULT
};

const SIGPIPE: i32 = 13;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let killed = context.recording.processes.iter().filter_map(|process| match process.exit {
        Some(Exit::Signal(number)) => Some((process.pid, number)),
        _ => None,
    });
    killed.flat_map(|(pid, number)| judge_process(context, pid, number)).collect()
}

fn judge_process(context: &RuleContext, pid: u32, number: i32) -> Vec<Finding> {
    let how = format!("{} ended it", signal_name(number));
    let lost = last_snapshots(context, pid).into_iter().filter(|(snapshot, buffer)| {
        let written_later = context.wrote_between(pid, buffer.fd, snapshot.at_s, f64::INFINITY);
        let file = context.file_at(pid, buffer.fd, snapshot.at_s);
        let kind = file.map(|file| context.kind(file));
        let may_be_pipe = matches!(kind, Some(StreamKind::Pipe | StreamKind::Socket) | None);
        let pending = snapshot.moment == SnapshotMoment::Signal || !written_later;
        pending && !(number == SIGPIPE && may_be_pipe)
    });
    let lost = lost.map(|(snapshot, buffer)| {
        let fix = CodeFix::Flush;
        LostBytes { rule: &RULE, snapshot, buffer, how: how.clone(), fix }
    });
    let mut found: Vec<Finding> = lost.filter_map(|lost| context.lost_finding(&lost)).collect();
    if let Some(unfinished) = unfinished_flush(context, pid, number, &how) {
        found.retain(|other| other.fd != unfinished.fd);
        found.push(unfinished);
    }
    found
}

/// Returns the finding for the bytes of CPython's last write that the signal has interrupted, and for those pending behind them.
fn unfinished_flush(context: &RuleContext, pid: u32, number: i32, how: &str) -> Option<Finding> {
    let call = context.calls(pid).last()?.call;
    let written = call.result.max(0) as u64;
    let missing =
        call.requested_bytes.checked_sub(written).filter(|missing| *missing > 0 && call.op.writes())?;
    let of_flush = |buffer: &Buffer| buffer.fd == call.fd && buffer.walker == RuntimeId::CPYTHON;
    let (snapshot, buffer) = last_snapshots(context, pid).into_iter().find(|(_, one)| of_flush(one))?;
    let mut pending = call.head.get(written as usize..).unwrap_or_default().to_vec();
    if pending.len() as u64 == missing {
        pending.extend(&buffer.pending);
    }
    let buffer = Buffer { pending_bytes: missing + buffer.pending_bytes, pending, ..buffer.clone() };
    let lost = LostBytes { rule: &RULE, snapshot, buffer: &buffer, how: how.into(), fix: CodeFix::Flush };
    if number == SIGPIPE { None } else { context.lost_finding(&lost) }
}

/// Returns each buffer of the image that the signal ended, as the last snapshot that has the buffer shows it. The snapshot at
/// the signal has the buffers of some runtimes only.
fn last_snapshots<'a>(context: &RuleContext<'a>, pid: u32) -> Vec<(BufferSnapshot<'a>, &'a Buffer)> {
    let last_image = context.process(pid).and_then(|process| process.images.last());
    let since_s = last_image.map_or(0.0, |image| image.started_s);
    let of_image =
        |snapshot: &&BufferSnapshot| snapshot.at_s >= since_s && snapshot.moment != SnapshotMoment::Exec;
    let mut found: Vec<(BufferSnapshot, &Buffer)> = Vec::new();
    for snapshot in context.snapshots(pid).iter().rev().filter(of_image) {
        let known = found.len();
        let is_new =
            |buffer: &&Buffer| found[..known].iter().all(|(_, other)| other.address != buffer.address);
        let new: Vec<_> = snapshot.buffers.iter().filter(is_new).map(|buffer| (*snapshot, buffer)).collect();
        found.extend(new);
    }
    found
}
