//! over-read: a program took more of a shared input than it used, and the next one misses it.
//!
//! Evidence: unread bytes in its stream buffer when it ended, became another program or was last looked at;
//! the same open file is read by another program afterwards; and no lseek(2) gave them back. Where no walker
//! knows the buffer: it read in blocks, left without having seen the end, and wrote something else than it
//! took (Warn: what it used is not known). dd and head -c take exactly what they pass on.

use weir_model::trace::{Buffer, SnapshotMoment, Op, StreamCounts};
use weir_model::{Direction, Finding, Severity};

use crate::context::{Context, Look};
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, preview};

pub(crate) const RULE: Rule = Rule {
    id: "over-read",
    title: "The next program misses input",
    meaning: "a program reads more than it uses from a descriptor that the next program shares",
    position: 90,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnPath("shared-offset")],
    judge,
    ..Rule::DEFAULT
};

/// A question for this much is for a block, not for a record.
const BLOCK: u64 = 1024;

fn judge(context: &Context) -> Vec<Finding> {
    let flows =
        context.toward(Direction::In).filter(|flow| flow.bytes > 0 && context.is_shared_input(flow.file));
    flows.filter_map(|flow| next_reader(context, flow).and_then(|next| judged(context, flow, next))).collect()
}

/// The flow of another program that reads the same open file when this one has read its last.
fn next_reader<'a>(context: &Context<'a>, flow: &StreamCounts) -> Option<&'a StreamCounts> {
    let others = context.flows_on(flow.file).iter().copied().filter(|other| {
        let other_program = (other.pid, other.image) != (flow.pid, flow.image);
        let here =
            other.pid == flow.pid || context.descends(other.pid, flow.pid) || ended(context, flow, other);
        other.direction == Direction::In && other_program && here && other.first_s >= flow.last_s
    });
    others.min_by(|a, b| a.first_s.total_cmp(&b.first_s))
}

/// Whether the first reader was gone before the other began: two that run side by side share on purpose.
fn ended(context: &Context, flow: &StreamCounts, other: &StreamCounts) -> bool {
    context.ended_at(flow.pid) <= other.first_s
}

fn judged(context: &Context, flow: &StreamCounts, next: &StreamCounts) -> Option<Finding> {
    if gave_back(context, flow, next) || inherited_buffer(context, flow, next) {
        return None;
    }
    match last_look(context, flow, next) {
        Some((look, buffer)) => {
            let unread = buffer.unread_bytes;
            let inherited =
                context.image_at(look.pid, look.at_s).is_none_or(|(image, _)| image as u32 != flow.image);
            (unread > 0 && !inherited).then(|| found(context, flow, next, Some((unread, &buffer.unread))))
        }
        None => guessed(context, flow).then(|| found(context, flow, next, None)),
    }
}

/// Whether the next one was forked behind the last read and runs the same program: it has the buffer, with what is
/// unread in it.
fn inherited_buffer(context: &Context, flow: &StreamCounts, next: &StreamCounts) -> bool {
    let forked = next.pid != flow.pid && context.forked_at(next.pid) >= flow.last_s;
    forked && next.image == 0 && context.descends(next.pid, flow.pid)
}

/// Whether it moved the offset back behind its last read.
fn gave_back(context: &Context, flow: &StreamCounts, next: &StreamCounts) -> bool {
    context.calls(flow.pid).iter().any(|seen| {
        let here = seen.call.file.map_or(seen.call.fd == flow.fd, |file| file == flow.file);
        let after = seen.at_s >= flow.last_s && seen.at_s <= next.first_s;
        seen.call.op == Op::Lseek && seen.call.result >= 0 && here && after
    })
}

/// The stream of this descriptor as it was left to the next reader: when it left it, or at the last look
/// before. A look at the read itself does not count its bytes yet.
fn last_look<'a>(
    context: &Context<'a>,
    flow: &StreamCounts,
    next: &StreamCounts,
) -> Option<(Look<'a>, &'a Buffer)> {
    let leaving = |look: &Look| matches!(look.moment, SnapshotMoment::Exec | SnapshotMoment::Exit | SnapshotMoment::Fork);
    let looks = context.looks(flow.pid).iter().filter(|look| {
        look.at_s >= flow.last_s && (look.at_s <= next.first_s || leaving(look) && next.pid != flow.pid)
    });
    let streams = looks.flat_map(|look| look.buffers.iter().map(move |buffer| (*look, buffer)));
    let here = streams.filter(|(_, buffer)| buffer.fd == flow.fd && buffer.buffer_bytes > 0);
    let here: Vec<_> = here.collect();
    here.iter().find(|(look, _)| leaving(look)).or(here.last()).copied()
}

/// Without a look into its buffer: blocks, no end seen, and other bytes passed on than taken.
fn guessed(context: &Context, flow: &StreamCounts) -> bool {
    let passed_on = |out: &&StreamCounts| {
        out.direction == Direction::Out && out.image == flow.image && out.bytes == flow.bytes
    };
    let blocks = flow.asked_max >= BLOCK && flow.asked.below(BLOCK) == 0 && flow.asked.total() > 0;
    blocks
        && flow.zeros == 0
        && flow.errors == 0
        && flow.seeks == 0
        && !context.flows(flow.pid).iter().any(passed_on)
}

fn found(
    context: &Context,
    flow: &StreamCounts,
    next: &StreamCounts,
    unread: Option<(u64, &Vec<u8>)>,
) -> Finding {
    let severity = if unread.is_some() { Severity::High } else { Severity::Warn };
    let (taker, heir) = (context.name_at(flow.pid, flow.first_s), context.name_at(next.pid, next.first_s));
    let why = match unread {
        Some((bytes, text)) => {
            format!(
                "{taker} left {} of its input unused in its buffer, and {heir} goes on behind them: \
                {} is missing there.",
                count(bytes, "byte"),
                preview(text)
            )
        }
        None => format!(
            "{taker} took {} of the input in blocks of up to {} and stopped before its end; {heir} goes \
                on behind the last block, not behind what was used.",
            count(flow.bytes, "byte"),
            count(flow.asked_max, "byte")
        ),
    };
    let fix = "let one program read it all; or read without a buffer up to where the next one begins \
               (setvbuf(stdin, NULL, _IONBF, 0), or the shell's read); or give the input as a file and \
                lseek(2) back (fflush(stdin) does) before the next program starts.";
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file));
    let draft = draft
        .count("read_bytes", flow.bytes)
        .count("next_read_bytes", next.bytes)
        .count("next", next.pid.into());
    match unread {
        Some((bytes, _)) => draft.count("unread_bytes", bytes).say(why, fix),
        None => draft.say(why, fix),
    }
}
