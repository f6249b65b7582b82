//! ignored-write-error: a write or a sync failed, and the program ended as if it had not.
//!
//! Evidence: the call's errno, exit status 0, nothing on standard error afterwards, and the same bytes were not
//! written later. A pipe whose reader has gone (EPIPE) is mostly meant: Info, but Warn for a program that goes on
//! writing to nobody. Standard error itself is left out: there is nowhere to complain.

use std::collections::BTreeMap;

use weir_model::{Finding, Severity};

use crate::context::{Context, Seen};
use crate::fix::Topic;
use crate::flags::{EBADF, EDQUOT, EFBIG, EIO, ENOSPC, EPIPE};
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, errno};

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

fn judge(context: &Context) -> Vec<Finding> {
    let pids = context.recording.processes.iter().map(|process| process.pid);
    pids.flat_map(|pid| of_process(context, pid)).collect()
}

fn of_process(context: &Context, pid: u32) -> Vec<Finding> {
    let mut streams: BTreeMap<i32, Vec<Seen>> = BTreeMap::new();
    for seen in context.calls(pid).iter().filter(|seen| failed(seen)) {
        streams.entry(seen.call.fd).or_default().push(*seen);
    }
    streams.retain(|_, failures| {
        let last = failures[failures.len() - 1];
        context.said_nothing(pid, failures[0].at_s) && !context.tried_again(&last)
    });
    streams.values().map(|failures| found(context, failures)).collect()
}

fn failed(seen: &Seen) -> bool {
    let call = seen.call;
    let errors = [ENOSPC, EIO, EPIPE, EBADF, EFBIG, EDQUOT];
    let writes = call.op.writes() || call.op.copies();
    let asked = call.op.syncs() && call.result != -EBADF || writes && call.asked > 0;
    asked && call.fd != 2 && errors.contains(&-call.result)
}

/// A stream flushed when it is full, at a close and at exit has failed no more often than this when the
/// program stopped at once.
const STOPPED: usize = 3;

fn severity(error: i64, failures: usize) -> Severity {
    match error {
        EPIPE if failures <= STOPPED => Severity::Info,
        EPIPE => Severity::Warn,
        EBADF => Severity::Warn,
        _ => Severity::High,
    }
}

fn found(context: &Context, failures: &[Seen]) -> Finding {
    let first = failures[0];
    let error = -first.call.result;
    let bytes: u64 = failures.iter().map(|seen| seen.call.asked).sum();
    let file = first.call.file;
    let path = file.and_then(|file| context.file(file)).map_or("?", |file| &file.path);
    let why = format!(
        "{}(2) to {path} failed with {}, and {} ended with status 0 and no message: {} are missing.",
        first.call.op.name(),
        errno(error),
        context.name(first.pid),
        count(bytes, "byte")
    );
    let code = context.code(first.pid, first.at_s, Topic::CheckErrors);
    let draft = context.draft(&RULE, severity(error, failures.len()), first.pid, first.call.fd, file);
    let draft = draft.count("failures", failures.len() as u64).count("lost_bytes", bytes);
    draft.figure("errno", error as f64).figure("at_s", first.at_s).say(why, format!("{code}."))
}
