//! lost-at-kill: a signal ended the process with bytes in its buffer.
//!
//! Evidence: the look at the signal, or where there was none the last look before it with no write after. Not
//! meant: SIGPIPE's own pipe, whose reader wants no more, and a forked child's copy of its parent's bytes.

use weir_model::trace::{Exit, Moment};
use weir_model::{Finding, FindingId, StreamKind};

use super::Rule;
use crate::buffers::Lost;
use crate::context::{Context, Look};
use crate::words::signal;

pub(crate) const RULE: Rule = Rule { id: FindingId::LostAtKill, judge };

const SIGPIPE: i32 = 13;

fn judge(context: &Context) -> Vec<Finding> {
    let killed = context.recording.processes.iter().filter_map(|process| match process.exit {
        Some(Exit::Signal(number)) => Some((process.pid, number)),
        _ => None,
    });
    killed.flat_map(|(pid, number)| of_process(context, pid, number)).collect()
}

fn of_process(context: &Context, pid: u32, number: i32) -> Vec<Finding> {
    let Some(look) = last_look(context, pid) else { return Vec::new() };
    let how = format!("{} ended it", signal(number));
    let buffers = look.buffers.iter().filter(|buffer| {
        let later = context.wrote_between(pid, buffer.fd, look.at_s, f64::INFINITY);
        let file = context.file_at(pid, buffer.fd, look.at_s);
        let kind = file.map(|file| context.kind(file));
        let unwanted =
            number == SIGPIPE && matches!(kind, Some(StreamKind::Pipe | StreamKind::Socket) | None);
        !unwanted && (look.moment == Moment::Signal || !later)
    });
    buffers.filter_map(|buffer| context.lost(&Lost { id: RULE.id, look, buffer, how: how.clone() })).collect()
}

/// The look at the signal, or the last one at the image that it ended.
fn last_look<'a>(context: &Context<'a>, pid: u32) -> Option<Look<'a>> {
    let looks = context.looks(pid);
    let last_image = context.process(pid)?.images.last()?.started_s;
    let last = looks.iter().rfind(|look| look.moment == Moment::Signal).or_else(|| looks.last())?;
    (last.at_s >= last_image && last.moment != Moment::Exec).then_some(*last)
}
