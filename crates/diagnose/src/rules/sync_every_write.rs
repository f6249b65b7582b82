//! sync-every-write: a sync call after every write.
//!
//! Evidence: at least ten sync calls of one file, and at most two writes for each of them, or at most eight if the syncs take at
//! least half of the run. They cost the mean time of the timed ones each, or the price of a sync if few are timed, and at most
//! the time from the file's first call to its last. Other files that the program syncs about as often belong to the same step
//! and add to the cost: a journal that is made anew each time, or the directory. The gain includes the kernel's work of opening
//! a file anew each time. A program that syncs whole blocks may have to (a database's transactions): at most warn.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use weir_model::duration::format_seconds;
use weir_model::trace::{Op, StreamCounts};
use weir_model::{Direction, Finding, Gain, Severity, StreamKind, Untrusted};

use crate::context::RuleContext;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{least_certain, part_certainty};

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

/// The mean bytes of a write from which writes may be transactions of a database: its smallest usual page.
const BLOCK: f64 = 4096.0;

/// The number of syncs of a file from which they are a habit.
const HABIT: u64 = 10;

/// The most writes per sync in a small batch. Such batches are reported if their syncs cost at least [`BATCH_SHARE`] of the run.
const BATCH: u64 = 8;
const BATCH_SHARE: f64 = 0.5;

/// All writes and syncs of one program of a process on one file, however often it opened the file.
struct SyncedFile<'a> {
    streams: Vec<&'a StreamCounts>,
    writes: u64,
    syncs: u64,
    bytes: u64,
    /// Seconds of the syncs: see [`sync_s`].
    cost_s: f64,
}

type StreamsByFile<'a> = BTreeMap<Cow<'a, str>, Vec<&'a StreamCounts>>;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let images = streams_by_image(context).into_values().map(|files| {
        let files = files.into_values().map(|streams| SyncedFile::new(context, streams));
        files.filter(|file| file.syncs >= HABIT).collect()
    });
    images.flat_map(|files| judge_image(context, files)).collect()
}

/// Returns the streams of each process and image with at least [`HABIT`] syncs, by file.
fn streams_by_image<'a>(context: &RuleContext<'a>) -> BTreeMap<(u32, u32), StreamsByFile<'a>> {
    let recording = context.recording;
    let mut syncs: HashMap<(u32, u32), u64> = HashMap::new();
    for stream in recording.counts.iter().filter(|stream| stream.syncs > 0) {
        *syncs.entry((stream.pid, stream.image)).or_default() += stream.syncs;
    }
    let mut by_image: BTreeMap<(u32, u32), StreamsByFile> = BTreeMap::new();
    for stream in &recording.counts {
        let image = (stream.pid, stream.image);
        if syncs.get(&image).is_some_and(|&syncs| syncs >= HABIT) {
            let file = recording.first_name(stream.file);
            let path = file.map(|file| file.path.exact()).filter(|path| !path.is_empty());
            let name = path.map_or_else(|| format!("#{}", stream.file).into(), Cow::Borrowed);
            by_image.entry(image).or_default().entry(name).or_default().push(stream);
        }
    }
    by_image
}

/// Returns a finding for each file with at most two writes per sync. That with most syncs includes the other files that are
/// synced at least half as often. Without any such file, returns a finding for the file with the fewest writes per sync, if they
/// are at most [`BATCH`] and the syncs cost at least [`BATCH_SHARE`] of the run.
fn judge_image(context: &RuleContext, files: Vec<SyncedFile>) -> Vec<Finding> {
    let (mut own, mut beside): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.is_synced_every(context, 2));
    let batches = own.is_empty();
    if batches {
        let frequency = |file: &SyncedFile| file.syncs as f64 / file.writes.max(1) as f64;
        beside.sort_by(|a, b| frequency(b).total_cmp(&frequency(a)));
        let first = beside.iter().position(|file| file.is_synced_every(context, BATCH));
        own.extend(first.map(|first| beside.remove(first)));
    }
    own.sort_by_key(|file| std::cmp::Reverse(file.syncs));
    let findings = own.iter().enumerate().map(|(index, file)| {
        let with: Vec<_> =
            beside.iter().filter(|other| index == 0 && other.syncs * 2 >= file.syncs).collect();
        let finding = finding(context, file, &with)?;
        Some(finding).filter(|finding| !batches || finding.evidence["share"] >= BATCH_SHARE)
    });
    findings.flatten().collect()
}

impl<'a> SyncedFile<'a> {
    fn new(context: &RuleContext, streams: Vec<&'a StreamCounts>) -> Self {
        let outputs = || streams.iter().filter(|stream| stream.direction == Direction::Out);
        let syncs = streams.iter().map(|stream| stream.syncs).sum();
        let writes = outputs().map(|stream| stream.moving_calls()).sum();
        let bytes = outputs().map(|stream| stream.bytes).sum();
        // A build has tens of thousands of files that are never synced.
        let cost_s = if syncs < HABIT { 0.0 } else { syncs as f64 * sync_s(context, &streams) };
        Self { writes, syncs, bytes, cost_s, streams }
    }

    /// Returns whether it is a regular file that is written, and synced at least once per this many writes.
    fn is_synced_every(&self, context: &RuleContext, writes: u64) -> bool {
        let is_file = context.kind(self.streams[0].file) == StreamKind::File;
        is_file && self.bytes > 0 && self.syncs * writes >= self.writes
    }

    /// Returns the seconds from the first call to the last.
    fn span_s(&self) -> f64 {
        let first_s = self.streams.iter().map(|stream| stream.first_s).fold(f64::INFINITY, f64::min);
        self.streams.iter().map(|stream| stream.last_s).fold(0.0, f64::max) - first_s
    }
}

/// Returns the seconds of one sync: the mean of the timed ones, or the price if too few of all streams together are timed.
fn sync_s(context: &RuleContext, streams: &[&StreamCounts]) -> f64 {
    let timed: u64 = streams.iter().map(|stream| stream.timed_syncs).sum();
    if timed < StreamCounts::MIN_TIMED_SYNCS {
        return context.recording.prices.sync_ns / 1e9;
    }
    streams.iter().map(|stream| stream.sync_s).sum::<f64>() / timed as f64
}

fn finding(context: &RuleContext, file: &SyncedFile, beside: &[&SyncedFile]) -> Option<Finding> {
    let beside_syncs: u64 = beside.iter().map(|other| other.syncs).sum();
    let all_s = file.cost_s + beside.iter().map(|other| other.cost_s).sum::<f64>();
    let cost_s = all_s.min(file.span_s());
    let reopening_s = reopening_s(context, file, beside).min(file.span_s() - cost_s);
    let saved_s = (cost_s + reopening_s) * (1.0 - 1.0 / file.syncs as f64);
    let stream = file.streams.iter().max_by_key(|stream| stream.bytes)?;
    let mut severity = RULE.severity_of(context, stream.pid, saved_s)?;
    let mean_bytes = file.bytes as f64 / file.writes.max(1) as f64;
    if mean_bytes >= BLOCK {
        severity = severity.min(Severity::Warn);
    }
    let certainty = least_certain(file.streams.iter().map(|stream| part_certainty(stream)));
    let why = format!(
        "{} called {} {} times for {} writes of {mean_bytes:.0} bytes{}: it waits for the device for about {} of {}{}.",
        context.stream_name(stream),
        sync_call(context, stream.file),
        certainty.text(file.syncs),
        certainty.text(file.writes),
        beside_clause(context, beside, beside_syncs),
        format_seconds(cost_s),
        format_seconds(context.run_s()),
        reopening_clause(reopening_s)
    );
    let fix = "sync once per batch: after a number of records, every 100 ms, or at the end (one transaction in a \
        database); threads can share one fdatasync(2) (group commit; weir_sync of libweir does it).";
    let gain = Gain { elapsed_s: saved_s, calls: file.syncs + beside_syncs - 1 };
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file)).gain(gain);
    let finding = finding.count("syncs", file.syncs).count("syncs_beside", beside_syncs);
    let finding = finding.count("writes", file.writes).figure("mean_bytes", mean_bytes);
    let finding = finding.figure("cost_s", cost_s).figure("share", context.share(cost_s));
    Some(finding.build(why, fix))
}

/// Returns the name of the call that synced a file most often, of the recorded ones.
fn sync_call(context: &RuleContext, file: u32) -> &'static str {
    let of_file: Vec<Op> =
        context.syncs_of(file).filter(|sync| !sync.is_of_all_files()).map(|sync| sync.op).collect();
    let times = |op: &Op| of_file.iter().filter(|other| *other == op).count();
    [Op::SyncFileRange, Op::Fdatasync, Op::Fsync].into_iter().max_by_key(times).unwrap_or(Op::Fsync).name()
}

/// Returns the kernel's CPU seconds of the calls on the files, if one of them is opened anew for at least every second sync, as a
/// database makes and removes its journal: one batch does so once. No price is known for this, so it is the files' share of the
/// process's system time, by calls.
fn reopening_s(context: &RuleContext, file: &SyncedFile, beside: &[&SyncedFile]) -> f64 {
    let files = || beside.iter().copied().chain([file]);
    if !files().any(|other| other.streams.len() as u64 * 2 >= file.syncs) {
        return 0.0;
    }
    let calls: u64 = files().flat_map(|other| &other.streams).map(|stream| stream.calls).sum();
    let pid = file.streams[0].pid;
    context.system_s(pid) * (calls as f64 / context.call_count(pid).max(1) as f64).min(1.0)
}

/// Returns the clause about the time that the gain has beside the wait.
fn reopening_clause(reopening_s: f64) -> String {
    match reopening_s {
        0.001.. => format!(", and its calls take about {} of CPU time", format_seconds(reopening_s)),
        _ => String::new(),
    }
}

/// Returns the clause about the files that are synced beside the finding's own.
fn beside_clause(context: &RuleContext, beside: &[&SyncedFile], syncs: u64) -> String {
    let files = beside.iter().filter_map(|other| context.file(other.streams[0].file));
    let paths = Untrusted::join(files.map(|file| &file.path), " and ");
    match syncs {
        0 => String::new(),
        syncs => {
            let streams = beside.iter().flat_map(|other| &other.streams);
            let certainty = least_certain(streams.map(|stream| part_certainty(stream)));
            format!(", and {} times for {paths} beside it", certainty.text(syncs))
        }
    }
}
