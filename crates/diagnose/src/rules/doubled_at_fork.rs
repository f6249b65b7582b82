//! doubled-at-fork: bytes pending at fork(2) are written by parent and child.
//!
//! Evidence: a buffer of the parent has pending bytes at the fork, and afterwards the first write of both child and parent to
//! that open file begins with these bytes. Two processes that write the same text on their own have nothing pending at the
//! fork; a child that calls execve(2) or _exit(2) does not write its copy.

use weir_model::trace::{Buffer, EventKind, SnapshotMoment};
use weir_model::{Finding, Severity};

use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext, TimedCall, same_prefix};
use crate::rule::Supersedes::{OnPath, OnStream};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::run_advice::RunOption;
use crate::text::{count, preview};

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

/// The most seconds between a fork event and its snapshot: the snapshot is taken at the entry or the exit of the call.
const NEAR_S: f64 = 0.2;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let forks = context.recording.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { child } => Some((event.pid, child, event.at_s)),
        _ => None,
    });
    let forks: Vec<(u32, u32, f64)> = forks.collect();
    let mut findings = Vec::new();
    for (index, &(parent, child, at_s)) in forks.iter().enumerate() {
        let next = forks[index + 1..].iter().find(|(pid, ..)| *pid == parent);
        let mut judged = Vec::new();
        for snapshot in snapshots_at_fork(context, parent, at_s, next.map_or(f64::INFINITY, |next| next.2)) {
            for buffer in snapshot.buffers {
                if !judged.contains(&(buffer.walker, buffer.address)) {
                    judged.push((buffer.walker, buffer.address));
                    findings.extend(judge_buffer(context, &snapshot, buffer, child));
                }
            }
        }
    }
    findings
}

/// Returns the snapshot of the parent that is nearest to the fork, and those that follow the fork until `next_s`: the buffers of
/// another runtime, if a call of another thread came between the two snapshots.
fn snapshots_at_fork<'a>(
    context: &RuleContext<'a>,
    parent: u32,
    at_s: f64,
    next_s: f64,
) -> Vec<BufferSnapshot<'a>> {
    let distance = |snapshot: &BufferSnapshot| (at_s - snapshot.at_s).abs();
    let near =
        |snapshot: &&BufferSnapshot| snapshot.moment == SnapshotMoment::Fork && distance(snapshot) < NEAR_S;
    let mut found: Vec<_> = context.snapshots(parent).iter().filter(near).copied().collect();
    found.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut is_nearest = true;
    found.retain(|one| std::mem::take(&mut is_nearest) || one.at_s >= at_s && one.at_s < next_s);
    found
}

fn judge_buffer(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    child: u32,
) -> Option<Finding> {
    if buffer.pending_bytes == 0 || buffer.pending.is_empty() || buffer.fd < 0 {
        return None;
    }
    let file = context.file_at(snapshot.pid, buffer.fd, snapshot.at_s);
    let writes_pending = |pid: u32| {
        let is_write = move |timed: &&TimedCall| {
            let same = timed.call.fd == buffer.fd || (file.is_some() && timed.call.file == file);
            same && timed.call.op.writes() && timed.call.result > 0 && timed.at_s >= snapshot.at_s
        };
        let first = context.calls(pid).iter().find(is_write);
        first.is_some_and(|timed| same_prefix(&timed.call.head, &buffer.pending))
    };
    let discarded = file.is_some_and(|file| context.is_null(file));
    let doubled = !discarded && writes_pending(child) && writes_pending(snapshot.pid);
    doubled.then(|| finding(context, snapshot, buffer, child, file))
}

fn finding(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    child: u32,
    file: Option<u32>,
) -> Finding {
    let (pid, at_s, bytes) = (snapshot.pid, snapshot.at_s, buffer.pending_bytes);
    let why = format!(
        "{} had {} pending when it forked; it and its child {child} wrote them: {} is there twice.",
        context.name_at(pid, at_s),
        count(bytes, "byte"),
        preview(&buffer.pending)
    );
    let code = context.code_fix(pid, at_s, (buffer.fd, file), CodeFix::FlushBeforeFork);
    let command = context.drain_command(RunOption::FixFork, (pid, at_s), buffer);
    let finding = context.finding(&RULE, Severity::High, pid, buffer.fd, file);
    let finding = finding.count("doubled_bytes", bytes).figure("at_s", at_s).count("child", child.into());
    let finding = finding.call_site(context.recording.write_site(pid, buffer.address, at_s));
    finding.build_with_command(why, command, code)
}
