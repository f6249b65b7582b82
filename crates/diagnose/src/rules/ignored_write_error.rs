//! ignored-write-error: a write or a sync fails and the program ends as if it had succeeded.
//!
//! Evidence: the call's errno, exit status 0, nothing on standard error afterwards, and no later write of the same bytes. EPIPE
//! is mostly intended, because the reader has gone: info, but warn for a program that goes on writing. Errors on standard
//! error itself are not reported, because the program has no place for a message.

use std::collections::BTreeMap;

use weir_model::{Finding, Severity};

use crate::code_fix::CodeFix;
use crate::context::{RuleContext, TimedCall};
use crate::flags::{EBADF, EDQUOT, EFBIG, EIO, ENOSPC, EPIPE};
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{count, errno_name};

pub(crate) const RULE: Rule = Rule {
    id: "ignored-write-error",
    title: "Write error ignored",
    meaning: "a write fails and the program ends as if it had succeeded",
    position: 180,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[
        OnStream("lost-at-exit"),
        OnStream("short-write-unhandled"),
        OnStream("ignored-close-error"),
    ],
    judge,
    ..Rule::DEFAULT
};

/// The most failed writes of a program that stops at EPIPE: a flush when the buffer is full, at close and at exit.
const STOPPED: usize = 3;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let pids = context.recording.processes.iter().map(|process| process.pid);
    pids.flat_map(|pid| judge_process(context, pid)).collect()
}

fn judge_process(context: &RuleContext, pid: u32) -> Vec<Finding> {
    let mut by_fd: BTreeMap<i32, Vec<TimedCall>> = BTreeMap::new();
    for timed in context.calls(pid).iter().filter(|timed| failed(timed)) {
        by_fd.entry(timed.call.fd).or_default().push(*timed);
    }
    by_fd.retain(|_, failures| {
        let last = failures[failures.len() - 1];
        context.exited_silently(pid, failures[0].at_s) && !context.retried(&last)
    });
    by_fd.values().map(|failures| finding(context, failures)).collect()
}

fn failed(timed: &TimedCall) -> bool {
    let call = timed.call;
    let errors = [ENOSPC, EIO, EPIPE, EBADF, EFBIG, EDQUOT];
    let syncs = call.op.syncs() && call.result != -EBADF;
    let writes = (call.op.writes() || call.op.copies()) && call.requested_bytes > 0;
    (syncs || writes) && call.fd != 2 && errors.contains(&-call.result)
}

fn severity(error: i64, failures: usize) -> Severity {
    match error {
        EPIPE if failures <= STOPPED => Severity::Info,
        EPIPE | EBADF => Severity::Warn,
        _ => Severity::High,
    }
}

fn finding(context: &RuleContext, failures: &[TimedCall]) -> Finding {
    let first = failures[0];
    let (file, error) = (first.call.file, -first.call.result);
    let bytes: u64 = failures.iter().map(|timed| timed.call.requested_bytes).sum();
    let path = file.and_then(|file| context.file(file)).map_or("?".into(), |file| file.path.to_string());
    let effect = match bytes {
        0 => "it is unknown whether the written bytes are on the device".into(),
        1 => "1 byte is missing".into(),
        _ => format!("{} are missing", count(bytes, "byte")),
    };
    let why = format!(
        "{}(2) to {path} failed with {}, and {} ended with status 0 and no message: {effect}.",
        first.call.op.name(),
        errno_name(error),
        context.name_at(first.pid, first.at_s),
    );
    let code = context.code_fix(first.pid, first.at_s, (first.call.fd, file), CodeFix::CheckErrors);
    let severity = severity(error, failures.len());
    let finding = context.finding(&RULE, severity, first.pid, first.call.fd, file);
    let finding = finding.count("failures", failures.len() as u64).count("lost_bytes", bytes);
    finding.figure("errno", error as f64).figure("at_s", first.at_s).build(why, format!("{code}."))
}
