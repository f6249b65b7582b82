//! ignored-close-error: close(2) fails and the program ends as if it had succeeded.
//!
//! Evidence: close(2) of a written file fails with EIO, ENOSPC or EDQUOT (network file systems report there that they did not
//! store the data), then exit status 0 and nothing on standard error. Or EBADF for a descriptor that the same process wrote to
//! and closed just before: one day the second close hits another thread's file. Loops that close all descriptor numbers are
//! not reported.

use weir_model::trace::Op;
use weir_model::{Direction, Finding, Severity};

use crate::code_fix::CodeFix;
use crate::context::{RuleContext, TimedCall};
use crate::flags::{EBADF, EDQUOT, EIO, ENOSPC};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{count, errno_name};

pub(crate) const RULE: Rule = Rule {
    id: "ignored-close-error",
    title: "Close error ignored",
    meaning: "close(2) fails and the program ends as if it had succeeded",
    position: 190,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// The most seconds between two closes of a descriptor that count as one mistake.
const TWICE_S: f64 = 0.05;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let pids = context.recording.processes.iter().map(|process| process.pid);
    pids.filter_map(|pid| judge_process(context, pid)).collect()
}

fn judge_process(context: &RuleContext, pid: u32) -> Option<Finding> {
    let closes: Vec<TimedCall> =
        context.calls(pid).iter().copied().filter(|timed| timed.call.op == Op::Close).collect();
    let failed = |index: &usize| match -closes[*index].call.result {
        EIO | ENOSPC | EDQUOT => true,
        EBADF => is_second_close(context, &closes, *index),
        _ => false,
    };
    let failures: Vec<TimedCall> = (0..closes.len()).filter(failed).map(|index| closes[index]).collect();
    let first = *failures.first()?;
    let reported = -first.call.result != EBADF && !context.exited_silently(pid, first.at_s);
    (!reported).then(|| finding(context, first, failures.len() as u64))
}

/// Returns whether a failed close follows a close of the same descriptor, which the process had written to.
fn is_second_close(context: &RuleContext, closes: &[TimedCall], index: usize) -> bool {
    let second = closes[index];
    let is_neighbour =
        |other: Option<&TimedCall>| other.is_some_and(|other| (other.call.fd - second.call.fd).abs() == 1);
    let in_loop = is_neighbour(index.checked_sub(1).and_then(|before| closes.get(before)))
        && is_neighbour(closes.get(index + 1));
    let first = closes[..index].iter().rfind(|timed| timed.call.fd == second.call.fd);
    let Some(first) = first.filter(|timed| timed.call.result == 0 && !in_loop) else { return false };
    let wrote = context.streams_of(second.pid).iter().any(|stream| {
        let same = stream.fd == second.call.fd && first.call.file.is_none_or(|file| file == stream.file);
        same && stream.direction != Direction::In && stream.bytes > 0
    });
    wrote && second.at_s - first.at_s < TWICE_S
}

fn finding(context: &RuleContext, first: TimedCall, failures: u64) -> Finding {
    let (pid, fd, error) = (first.pid, first.call.fd, -first.call.result);
    let (severity, why, fix) = if error == EBADF {
        let name = context.name_at(pid, first.at_s);
        let why = format!(
            "{name} closed descriptor {fd} again right after it was closed ({}): once another file has \
            that number, it is closed instead.",
            count(failures, "time")
        );
        let fix = "close it once: fclose(stream), or the file object's close, closes the descriptor as well";
        (Severity::Warn, why, fix.to_string())
    } else {
        let name = context.name(pid);
        let why = format!(
            "close(2) failed with {}, so the data was not stored, and {name} ended with status 0 and \
            no message.",
            errno_name(error)
        );
        (
            Severity::High,
            why,
            context
                .code_fix(pid, first.at_s, (first.call.fd, first.call.file), CodeFix::CheckErrors)
                .to_string(),
        )
    };
    let file = first.call.file.or_else(|| context.file_at(pid, fd, first.at_s));
    let finding = context.finding(&RULE, severity, pid, fd, file);
    let finding = finding.count("failures", failures).figure("errno", error as f64);
    finding.figure("at_s", first.at_s).build(why, format!("{fix}."))
}
