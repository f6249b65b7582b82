//! lost-at-kill: a signal ended the process with bytes in its buffer.
//!
//! Evidence: the look at the signal, or the last look before it that told of the stream, with no write after. Not
//! meant: SIGPIPE's own pipe, whose reader wants no more, and a forked child's copy of its parent's bytes.

use weir_model::trace::{Buffer, Exit, SnapshotMoment};
use weir_model::{Finding, Severity, StreamKind};

use crate::buffers::Lost;
use crate::context::{Context, Look};
use crate::fix::Topic;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::signal;

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

fn judge(context: &Context) -> Vec<Finding> {
    let killed = context.recording.processes.iter().filter_map(|process| match process.exit {
        Some(Exit::Signal(number)) => Some((process.pid, number)),
        _ => None,
    });
    killed.flat_map(|(pid, number)| of_process(context, pid, number)).collect()
}

fn of_process(context: &Context, pid: u32, number: i32) -> Vec<Finding> {
    let how = format!("{} ended it", signal(number));
    let streams = last_looks(context, pid).into_iter().filter(|(look, buffer)| {
        let later = context.wrote_between(pid, buffer.fd, look.at_s, f64::INFINITY);
        let file = context.file_at(pid, buffer.fd, look.at_s);
        let kind = file.map(|file| context.kind(file));
        let unwanted =
            number == SIGPIPE && matches!(kind, Some(StreamKind::Pipe | StreamKind::Socket) | None);
        !unwanted && (look.moment == SnapshotMoment::Signal || !later)
    });
    let lost = streams.map(|(look, buffer)| Lost {
        rule: &RULE,
        look,
        buffer,
        how: how.clone(),
        topic: Topic::Flush,
    });
    lost.filter_map(|lost| context.lost(&lost)).collect()
}

/// Each stream of the image that the signal ended, at the last look that told of it: the look at the signal
/// knows the streams of some libraries only.
fn last_looks<'a>(context: &Context<'a>, pid: u32) -> Vec<(Look<'a>, &'a Buffer)> {
    let last_image = context.process(pid).and_then(|process| process.images.last());
    let since_s = last_image.map_or(0.0, |image| image.started_s);
    let own = |look: &&Look| look.at_s >= since_s && look.moment != SnapshotMoment::Exec;
    let mut told: Vec<(Look, &Buffer)> = Vec::new();
    for look in context.looks(pid).iter().rev().filter(own) {
        let known = told.len();
        let of_new = |buffer: &&Buffer| told[..known].iter().all(|(_, seen)| seen.address != buffer.address);
        let new: Vec<_> = look.buffers.iter().filter(of_new).map(|buffer| (*look, buffer)).collect();
        told.extend(new);
    }
    told
}
