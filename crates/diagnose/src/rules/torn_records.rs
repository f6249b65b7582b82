//! torn-records: records of several writers are cut into each other, or written over each other.
//!
//! Evidence, cut: two processes that run side by side write text to one target; one of them ends its calls in
//! the middle of a line because its buffer was full, and the other writes meanwhile. Evidence, overwritten: two
//! have opened one file each for itself without O_APPEND, both write from its beginning, and overlap in time.
//! Not meant: a prompt whose answer a child prints, whole lines by several processes, writes at stated places; nor who is
//! only thought to have written there, in a time in which nobody looked.

use std::collections::HashMap;

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::call_patterns::moving_calls;
use crate::context::Context;
use crate::flags::O_APPEND;
use crate::language::Language;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, part};

pub(crate) const RULE: Rule = Rule {
    id: "torn-records",
    title: "Records of several writers mixed",
    meaning: "records of several writers are mixed into each other or overwritten",
    position: 120,
    severity: SeverityRule::Effect { least: Severity::High, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// Writers of one target that are compared with each other; more of them tell nothing new.
const COMPARED: usize = 32;

/// Programs that write their blocks whatever the mode of their stream is: seq gives its stream whole buffers of numbers.
const DEAF: [&str; 5] = ["mawk", "seq", "cat", "dd", "tee"];

/// A buffer is at least this large: a shorter call that ends within a line was meant to.
const BUFFER: f64 = 512.0;

fn judge(context: &Context) -> Vec<Finding> {
    let mut targets: HashMap<String, Vec<&StreamCounts>> = HashMap::new();
    for flow in context.toward(Direction::Out).filter(|flow| flow.bytes > 0) {
        let kind = context.kind(flow.file);
        let shared = matches!(kind, StreamKind::File | StreamKind::Pipe | StreamKind::Socket);
        if shared && flow.jumps == 0 && (flow.exact || seen(context, flow)) {
            targets.entry(context.target(flow.file)).or_default().push(flow);
        }
    }
    let mut shared: Vec<_> = targets.into_values().filter(|writers| writers.len() > 1).collect();
    shared.sort_by_key(|writers| (writers[0].file, writers[0].pid));
    shared.iter().filter_map(|writers| of_target(context, &writers[..writers.len().min(COMPARED)])).collect()
}

fn of_target(context: &Context, writers: &[&StreamCounts]) -> Option<Finding> {
    let pairs =
        || writers.iter().flat_map(|a| writers.iter().map(move |b| (*a, *b))).filter(|(a, b)| a.pid != b.pid);
    if let Some((a, b)) = pairs().find(|(a, b)| overwrites(context, a, b)) {
        return Some(overwritten(context, a, b, writers.len()));
    }
    let (torn, other) = pairs().filter(|(a, b)| tears(context, a, b)).max_by_key(|(a, _)| cuts(a))?;
    Some(cut(context, torn, other, writers))
}

/// Whether a write of a flow was looked at.
fn seen(context: &Context, flow: &StreamCounts) -> bool {
    context.calls_on(flow.file).iter().any(|seen| seen.pid == flow.pid && seen.call.op.writes())
}

/// Calls that ended within a line.
fn cuts(flow: &StreamCounts) -> u64 {
    moving_calls(flow).saturating_sub(flow.newline_ends)
}

fn tears(context: &Context, a: &StreamCounts, b: &StreamCounts) -> bool {
    let calls = || context.calls_on(a.file).iter().filter(|seen| seen.pid == a.pid && seen.call.op.writes());
    let text = a.newline_ends > 0 || calls().any(|seen| seen.call.head.contains(&b'\n'));
    let known = calls().any(|seen| seen.call.tail.is_some());
    let buffered = a.mean_bytes() >= BUFFER && cuts(a) >= 2;
    text && known && buffered && meanwhile(context, a, b)
}

/// Whether the other's calls fall between calls of this one.
fn meanwhile(context: &Context, a: &StreamCounts, b: &StreamCounts) -> bool {
    let inside = |at_s: f64| at_s > a.first_s && at_s < a.last_s;
    let seen = context.calls_on(b.file).iter().filter(|seen| seen.pid == b.pid && seen.call.op.writes());
    seen.map(|seen| seen.at_s).chain([b.first_s, b.last_s]).any(inside)
}

fn overwrites(context: &Context, a: &StreamCounts, b: &StreamCounts) -> bool {
    let (Some(one), Some(other)) = (context.file(a.file), context.file(b.file)) else { return false };
    let separate = one.id != other.id && one.kind == StreamKind::File;
    let appending = one.flags & other.flags & O_APPEND != 0;
    let positioned = |flow: &StreamCounts| {
        let mut calls = context.calls_on(flow.file).iter().filter(|seen| seen.pid == flow.pid);
        flow.seeks > 0 || calls.any(|seen| seen.call.op.positioned())
    };
    let began = |flow: &StreamCounts| {
        context.calls_on(flow.file).first().map_or(flow.first_s, |seen| seen.at_s.min(flow.first_s))
    };
    let overlap = began(a).max(began(b)) < a.last_s.min(b.last_s);
    separate && !appending && overlap && !positioned(a) && !positioned(b)
}

/// The whole command by lines: one writer alone would write elsewhere, and leave the others as they are. Nothing where it
/// is not known, or where a writer cannot be told from outside.
fn by_lines(context: &Context, writers: &[&StreamCounts]) -> String {
    let deaf = |flow: &&&StreamCounts| {
        let exe = context.image_at(flow.pid, flow.first_s).map_or("", |(_, image)| image.exe.as_str());
        let language = context.language(flow.pid, flow.first_s);
        let name = exe.rsplit('/').next().unwrap_or_default();
        DEAF.contains(&name) || matches!(language, Language::Go | Language::Java | Language::Node)
    };
    if context.recording.command.is_empty() || writers.iter().any(|flow| deaf(&flow)) {
        return String::new();
    }
    format!("{}   or in code: ", context.weir_run_whole("--line"))
}

fn cut(context: &Context, torn: &StreamCounts, other: &StreamCounts, writers: &[&StreamCounts]) -> Finding {
    let why = format!(
        "{} and {} write to one {} at once, and {} of the {} writes of the first end in the middle of a \
            line: the other's lines come between.",
        context.name(torn.pid),
        context.name(other.pid),
        if context.kind(torn.file) == StreamKind::File { "file" } else { "pipe" },
        part(torn, cuts(torn)),
        part(torn, moving_calls(torn))
    );
    let fix = format!(
        "{}whole records in one write(2) each, with O_APPEND, in every writer \
         (setvbuf(stream, NULL, _IOLBF, 0) for lines shorter than the buffer).",
        by_lines(context, writers)
    );
    let draft = context.draft(&RULE, Severity::High, torn.pid, torn.fd, Some(torn.file));
    let draft = draft
        .count("cut_calls", cuts(torn))
        .count("calls", moving_calls(torn))
        .count("writers", writers.len() as u64);
    draft.figure("mean_bytes", torn.mean_bytes()).say(why, fix)
}

fn overwritten(context: &Context, a: &StreamCounts, b: &StreamCounts, writers: usize) -> Finding {
    let bytes = a.bytes.min(b.bytes);
    let why = format!(
        "{} and {} opened one file each for itself without O_APPEND and write from its beginning: up to \
            {} overwrite each other.",
        context.name(a.pid),
        context.name(b.pid),
        count(bytes, "byte")
    );
    let fix = "open it with O_APPEND (fopen(path, \"a\"), open(path, 'a'), >> in a shell) and write whole \
        records, or open it once before the fork.";
    let draft = context.draft(&RULE, Severity::High, a.pid, a.fd, Some(a.file));
    draft.count("overwritten_bytes", bytes).count("writers", writers as u64).say(why, fix)
}
