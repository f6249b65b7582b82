//! sync-every-write: a sync call after every write.
//!
//! Evidence: at least ten sync calls of one file, one for every two writes or more, or one for every few where the waits
//! are most of the run; and they cost as long as those took that were seen one by one, else by the prices, never more than
//! the time in which they happened. What a program syncs
//! beside it as often belongs to the same step and costs too: a journal that is made anew each time, the directory. A
//! program that syncs whole blocks may have to (a database's transactions): at most Warn.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::call_patterns::moving_calls;
use crate::context::Context;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{said, thousands};
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule {
    id: "sync-every-write",
    title: "A sync for every write",
    meaning: "a sync call after every write",
    position: 150,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::WaitTime,
    supersedes: &[OnStream("tiny-writes"), OnStream("line-buffered-bulk"), OnStream("unaligned-writes")],
    judge,
    ..Rule::DEFAULT
};

/// Writes of this much may be somebody's transactions.
const BLOCK: f64 = 4096.0;

/// Fewer syncs are nobody's habit.
const HABIT: u64 = 10;

/// Writes to a sync that are a small batch, where the syncs are …
const BATCH: u64 = 8;

/// … so much of the run.
const MOST: f64 = 0.5;

/// What a process wrote to one file, however often it opened it, and how often it synced it.
struct Synced<'a> {
    counts: Vec<&'a StreamCounts>,
    writes: u64,
    syncs: u64,
    bytes: u64,
    cost_s: f64,
}

/// A process's counts by the file that they lead to.
type ByName<'a> = BTreeMap<Cow<'a, str>, Vec<&'a StreamCounts>>;

fn judge(context: &Context) -> Vec<Finding> {
    let counts = &context.recording.counts;
    let mut syncs: HashMap<(u32, u32), u64> = HashMap::new();
    for flow in counts.iter().filter(|flow| flow.syncs > 0) {
        *syncs.entry((flow.pid, flow.image)).or_default() += flow.syncs;
    }
    let mut by_image: BTreeMap<(u32, u32), ByName> = BTreeMap::new();
    for flow in
        counts.iter().filter(|flow| syncs.get(&(flow.pid, flow.image)).is_some_and(|&syncs| syncs >= HABIT))
    {
        let file = context.recording.first_name(flow.file);
        let path = file.map(|file| file.path.as_str()).filter(|path| !path.is_empty());
        let name = path.map_or_else(|| format!("#{}", flow.file).into(), Cow::Borrowed);
        by_image.entry((flow.pid, flow.image)).or_default().entry(name).or_default().push(flow);
    }
    let images = by_image.into_values().map(|files| {
        files.into_values().map(|counts| Synced::of(context, counts)).filter(|one| one.syncs >= HABIT).collect()
    });
    images.flat_map(|synced: Vec<Synced>| of_image(context, synced)).collect()
}

/// A finding for each file that is synced with its writes; the one with most syncs has what is synced beside it. Where
/// there is none such, that which is synced most often for its writes, if it all is most of the run.
fn of_image(context: &Context, synced: Vec<Synced>) -> Vec<Finding> {
    let (mut own, mut beside): (Vec<_>, Vec<_>) = synced.into_iter().partition(|one| one.every(context, 2));
    let batches = own.is_empty();
    if batches {
        let often = |one: &Synced| one.syncs as f64 / one.writes.max(1) as f64;
        beside.sort_by(|a, b| often(b).total_cmp(&often(a)));
        let first = beside.iter().position(|one| one.every(context, BATCH));
        own.extend(first.map(|first| beside.remove(first)));
    }
    own.sort_by_key(|one| std::cmp::Reverse(one.syncs));
    let found = own.iter().enumerate().map(|(number, one)| {
        let with: Vec<_> =
            beside.iter().filter(|other| number == 0 && other.syncs * 2 >= one.syncs).collect();
        let finding = found(context, one, &with)?;
        Some(finding).filter(|finding| !batches || finding.evidence["share"] >= MOST)
    });
    found.flatten().collect()
}

impl<'a> Synced<'a> {
    fn of(context: &Context, counts: Vec<&'a StreamCounts>) -> Self {
        let out = || counts.iter().filter(|flow| flow.direction == Direction::Out);
        let syncs = counts.iter().map(|flow| flow.syncs).sum();
        let (writes, bytes) =
            (out().map(|flow| moving_calls(flow)).sum(), out().map(|flow| flow.bytes).sum());
        // Of tens of thousands of files that are never synced it is not worth asking all calls.
        let cost_s = if syncs < HABIT { 0.0 } else { syncs as f64 * sync_s(context, &counts) };
        Self { writes, syncs, bytes, cost_s, counts }
    }

    /// Whether it is a file that is written, and synced for every so many writes.
    fn every(&self, context: &Context, writes: u64) -> bool {
        let file = context.kind(self.counts[0].file) == StreamKind::File;
        file && self.bytes > 0 && self.syncs * writes >= self.writes
    }

    /// Seconds from the first call to the last.
    fn span_s(&self) -> f64 {
        let first_s = self.counts.iter().map(|flow| flow.first_s).fold(f64::INFINITY, f64::min);
        self.counts.iter().map(|flow| flow.last_s).fold(0.0, f64::max) - first_s
    }
}

/// Seconds that one sync took here: the mean of all that were seen, if they are several, else its price.
fn sync_s(context: &Context, counts: &[&StreamCounts]) -> f64 {
    let timed: u64 = counts.iter().map(|flow| flow.timed_syncs).sum();
    match timed {
        0..3 => context.recording.prices.sync_ns / 1e9,
        several => counts.iter().map(|flow| flow.sync_s).sum::<f64>() / several as f64,
    }
}

fn found(context: &Context, one: &Synced, beside: &[&Synced]) -> Option<Finding> {
    let more: u64 = beside.iter().map(|other| other.syncs).sum();
    let all_s = one.cost_s + beside.iter().map(|other| other.cost_s).sum::<f64>();
    let cost_s = all_s.min(one.span_s());
    let gain = Gain { elapsed_s: cost_s * (1.0 - 1.0 / one.syncs as f64), calls: one.syncs + more - 1 };
    let mut severity = RULE.severity_of(context, gain.elapsed_s)?;
    let mean_bytes = one.bytes as f64 / one.writes.max(1) as f64;
    if mean_bytes >= BLOCK {
        severity = severity.min(Severity::Warn);
    }
    let flow = one.counts.iter().max_by_key(|flow| flow.bytes)?;
    let exact = one.counts.iter().all(|flow| flow.exact);
    let why = format!(
        "{} called sync {} times for {} writes of {mean_bytes:.0} bytes{}: about {} of {} is waiting for the device.",
        context.name(flow.pid),
        said(exact, one.syncs),
        said(exact, one.writes),
        in_words(context, beside, more),
        format_seconds(cost_s),
        format_seconds(context.run_s())
    );
    let fix = "sync once for a batch: after every so many records, every 100 ms, or at the end (one \
        transaction in a \
               database); threads can share one fdatasync(2) (group commit; weir_sync of libweir does it).";
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("syncs", one.syncs).count("syncs_beside", more).count("writes", one.writes);
    let draft = draft.figure("mean_bytes", mean_bytes).figure("cost_s", cost_s);
    Some(draft.figure("share", context.share(cost_s)).say(why, fix))
}

/// What is synced beside the file, after the writes.
fn in_words(context: &Context, beside: &[&Synced], more: u64) -> String {
    let paths = beside.iter().filter_map(|other| context.file(other.counts[0].file));
    let names: Vec<&str> = paths.map(|file| file.path.as_str()).collect();
    match more {
        0 => String::new(),
        more => format!(", and {} times for {} beside it", thousands(more), names.join(" and ")),
    }
}
