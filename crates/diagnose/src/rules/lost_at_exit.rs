//! lost-at-exit: the process ended with bytes in its buffer, without the C library's exit(3).
//!
//! Evidence: the look at exit_group(2): exit(3) has written everything by then, so what is pending is lost.
//! Not meant: bytes that could not be written (the write failed: ignored-write-error), a pipe whose reader has
//! gone (Info), and a forked child that calls _exit(2) in order not to write its parent's bytes.

use weir_model::trace::{Exit, SnapshotMoment};
use weir_model::{Finding, Severity};

use crate::buffers::Lost;
use crate::context::{Context, Look};
use crate::fix::Topic;
use crate::rule::{GainKind, Rule, SeverityRule};

pub(crate) const RULE: Rule = Rule {
    id: "lost-at-exit",
    title: "Output missing after exit",
    meaning: "bytes in a user-space buffer are lost at _exit(2)",
    position: 70,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let ended = context.all_looks().filter(|look| look.moment == SnapshotMoment::Exit && was_last(context, look));
    ended.flat_map(|look| of_look(context, look)).collect()
}

/// Whether the process ended there by itself: a signal at that moment is lost-at-kill's.
fn was_last(context: &Context, look: &Look) -> bool {
    let signal = matches!(context.process(look.pid).and_then(|process| process.exit), Some(Exit::Signal(_)));
    let last = context.looks(look.pid).last().is_some_and(|last| last.at_s <= look.at_s);
    last && !signal
}

fn of_look(context: &Context, look: Look) -> Vec<Finding> {
    let how = "it ended by _exit(2)";
    let lost =
        |buffer| context.lost(&Lost { rule: &RULE, look, buffer, how: how.into(), topic: Topic::Flush });
    look.buffers.iter().filter_map(lost).collect()
}
