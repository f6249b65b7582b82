//! ignored-close-error: close(2) reported an error, and the program ended as if it had not.
//!
//! Evidence: close(2) of a written file failed with EIO, ENOSPC or EDQUOT (network file systems report there
//! that the data was not taken), then exit status 0 and nothing on standard error. Or EBADF for a descriptor
//! that the same process had written to and closed just before: closed twice, by accident another thread's
//! file one day. Loops that close every number there may be are left out.

use weir_model::trace::Op;
use weir_model::{Direction, Finding, Severity};

use crate::context::{Context, Seen};
use crate::fix::Topic;
use crate::flags::{EBADF, EDQUOT, EIO, ENOSPC};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, errno};

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

fn judge(context: &Context) -> Vec<Finding> {
    let pids = context.recording.processes.iter().map(|process| process.pid);
    pids.filter_map(|pid| of_process(context, pid)).collect()
}

fn of_process(context: &Context, pid: u32) -> Option<Finding> {
    let closes: Vec<Seen> =
        context.calls(pid).iter().copied().filter(|seen| seen.call.op == Op::Close).collect();
    let failed = |index: &usize| {
        let call = closes[*index].call;
        match -call.result {
            EIO | ENOSPC | EDQUOT => true,
            EBADF => closed_twice(context, &closes, *index),
            _ => false,
        }
    };
    let failures: Vec<Seen> = (0..closes.len()).filter(failed).map(|index| closes[index]).collect();
    let first = *failures.first()?;
    let told = -first.call.result != EBADF && !context.said_nothing(pid, first.at_s);
    (!told).then(|| found(context, first, failures.len() as u64))
}

fn closed_twice(context: &Context, closes: &[Seen], index: usize) -> bool {
    let this = closes[index];
    let neighbour =
        |other: Option<&Seen>| other.is_some_and(|other| (other.call.fd - this.call.fd).abs() == 1);
    let looping = neighbour(index.checked_sub(1).and_then(|before| closes.get(before)))
        && neighbour(closes.get(index + 1));
    let before = closes[..index].iter().rfind(|seen| seen.call.fd == this.call.fd);
    let Some(before) = before.filter(|seen| seen.call.result == 0 && !looping) else { return false };
    let wrote = context.flows(this.pid).iter().any(|flow| {
        let here = flow.fd == this.call.fd && before.call.file.is_none_or(|file| file == flow.file);
        here && flow.direction != Direction::In && flow.bytes > 0
    });
    wrote && this.at_s - before.at_s < 0.05
}

fn found(context: &Context, first: Seen, failures: u64) -> Finding {
    let error = -first.call.result;
    let file = first.call.file.or_else(|| context.file_at(first.pid, first.call.fd, first.at_s));
    let name = context.name(first.pid);
    let severity = if error == EBADF { Severity::Warn } else { Severity::High };
    let why = if error == EBADF {
        format!(
            "{name} closed descriptor {} again right after it was closed ({}): once another file has \
            that number, it is closed instead.",
            first.call.fd,
            count(failures, "time")
        )
    } else {
        format!(
            "close(2) failed with {}, so the data was not taken, and {name} ended with status 0 and \
            no message.",
            errno(error)
        )
    };
    let fix = if error == EBADF {
        "close it once: fclose(stream), or the file object's close, closes the descriptor as well".into()
    } else {
        context.code(first.pid, first.at_s, Topic::CheckErrors)
    };
    let draft = context.draft(&RULE, severity, first.pid, first.call.fd, file);
    let draft = draft.count("failures", failures).figure("errno", error as f64);
    draft.figure("at_s", first.at_s).say(why, format!("{fix}."))
}
