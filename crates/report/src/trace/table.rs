//! The table of streams: the most important ones, and the totals of the others.

use weir_model::Finding;
use weir_model::Untrusted;
use weir_model::trace::{Pipeline, StreamCounts, TraceStream};

use super::labels::{
    UNKNOWN_STREAM, bytes, counted, direction_sign, kind, mode_with_mark, process_label, thousands,
};
use super::startup::{self, StartupStreams};
use super::{TraceResult, locations};
use crate::block::Block;
use crate::number::{ABSENT, percent};
use crate::style::Emphasis;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};

/// Smallest share of the run's time that is emphasised.
const MUCH: f64 = 0.2;
/// Smallest share of the run's time that makes a stream important.
const MATTERS: f64 = 0.01;
/// Other input streams get a row if they have at least 1/20 of all calls or of all bytes …
const PART: u64 = 20;
/// … or 1/5 if not all streams fit: the totals by location say more than a few of many similar rows.
const LARGE_PART: u64 = 5;

/// Returns whether a finding is about a stream.
pub(super) fn is_of(finding: &Finding, stream: &TraceStream) -> bool {
    // The kernel reuses descriptors, so the path must match too.
    let named = |path: &Untrusted| path.is_empty() || path == stream.path || stream.also.contains(&path);
    (finding.pid, finding.fd) == (stream.counts.pid, stream.counts.fd) && named(&finding.path)
}

/// Returns whether any finding is about a stream.
pub(super) fn is_found(stream: &TraceStream, findings: &[Finding]) -> bool {
    findings.iter().any(|finding| is_of(finding, stream))
}

/// Returns whether a stream is an end of a pipeline.
fn is_piped(stream: &TraceStream, pipelines: &[Pipeline]) -> bool {
    let ends =
        pipelines.iter().flat_map(|pipeline| &pipeline.hops).flat_map(|hop| [&hop.writer, &hop.reader]);
    ends.into_iter().any(|end| (end.pid, end.fd) == (stream.counts.pid, stream.counts.fd))
}

/// Rank of output streams without a higher rank.
const OUTPUT: u8 = 3;
/// Largest number of streams of rank [`OUTPUT`] that get a row each if not all streams fit.
const OUTPUTS: usize = 4;

/// Returns the rank of a stream, 0 for the most important; `None` if it gets no row.
fn rank(stream: &TraceStream, trace: &TraceResult, much: (u64, u64)) -> Option<u8> {
    match () {
        () if is_found(stream, trace.findings) => Some(0),
        () if stream.share >= MATTERS || is_piped(stream, trace.pipelines) => Some(1),
        () if !stream.counts.is_known() => is_much(stream, much).then_some(4),
        () if stream.counts.fd <= 2 => Some(2),
        () if stream.writes() => Some(OUTPUT),
        () => is_much(stream, much).then_some(4),
    }
}

fn is_much(stream: &TraceStream, (calls, bytes): (u64, u64)) -> bool {
    stream.counts.calls >= calls || stream.counts.bytes >= bytes
}

/// The streams of a report by the way in which they are shown: indexes, ascending.
#[derive(Debug, Default)]
pub(super) struct ChosenStreams {
    /// Streams with a row each.
    pub rows: Vec<usize>,
    /// Streams of the start, in one line. All others are summed.
    pub startup: Vec<usize>,
}

/// Chooses the `most` most important streams; `None` for all streams.
pub(super) fn choose(streams: &[TraceStream], trace: &TraceResult, most: Option<usize>) -> ChosenStreams {
    let Some(most) = most else {
        return ChosenStreams { rows: (0..streams.len()).collect(), ..ChosenStreams::default() };
    };
    let startup = StartupStreams::of(trace.recording);
    let folds: Vec<bool> = streams.iter().map(|stream| startup.folds(stream, trace)).collect();
    let shown = |folded: bool| (0..streams.len()).filter(|&index| folds[index] == folded).collect();
    ChosenStreams { rows: important(streams, trace, most, shown(false)), startup: shown(true) }
}

/// Returns the `most` most important of some streams, ascending.
fn important(
    streams: &[TraceStream],
    trace: &TraceResult,
    most: usize,
    candidates: Vec<usize>,
) -> Vec<usize> {
    let sum = |of: fn(&TraceStream) -> u64| streams.iter().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|stream| stream.counts.calls), sum(|stream| stream.counts.bytes));
    let part = if candidates.len() <= most { PART } else { LARGE_PART };
    let much = (calls.div_ceil(part), bytes.div_ceil(part));
    let ranked = candidates.iter().filter_map(|&index| Some((rank(&streams[index], trace, much)?, index)));
    let mut ranked: Vec<(u8, usize)> = ranked.collect();
    let outputs = ranked.iter().filter(|(rank, _)| *rank == OUTPUT).count();
    if candidates.len() > most && outputs > OUTPUTS {
        ranked.retain(|&(rank, index)| rank != OUTPUT || is_much(&streams[index], much));
    }
    ranked.sort_by(|&(rank, a), &(other, b)| {
        let (a, b) = (&streams[a], &streams[b]);
        rank.cmp(&other).then(b.cost_s.total_cmp(&a.cost_s)).then(b.counts.bytes.cmp(&a.counts.bytes))
    });
    let mut order: Vec<usize> = ranked.into_iter().map(|(_, index)| index).take(most).collect();
    order.sort_unstable();
    order
}

/// Returns the table, its notes and the totals of the other streams.
pub(super) fn blocks(trace: &TraceResult, chosen: &ChosenStreams) -> Vec<Block> {
    let (streams, shown) = (&trace.streams, &chosen.rows);
    let rows: Vec<TableRow> = shown.iter().map(|&index| row(&streams[index])).collect();
    let mut is_summed = vec![true; streams.len()];
    shown.iter().chain(&chosen.startup).for_each(|&index| is_summed[index] = false);
    let rest = streams.iter().zip(&is_summed).filter(|(_, is_summed)| **is_summed);
    let rest: Vec<&TraceStream> = rest.map(|(stream, _)| stream).collect();
    let startup: Vec<&TraceStream> = chosen.startup.iter().map(|&index| &streams[index]).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Table(Table { columns: columns(), rows, ..Table::default() }));
        blocks.push(Block::Facts(marks(shown.iter().map(|&index| &streams[index]))));
        blocks.extend(names(shown.iter().map(|&index| &streams[index])));
    }
    blocks.extend(self::rest(&rest, !shown.is_empty()));
    blocks.extend(startup::line(&startup));
    blocks
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("process", "", Align::Left),
        Column::new("fd", "", Align::Right),
        Column::new("", "", Align::Left),
        Column::new("stream", "", Align::Path),
        Column::new("kind", "", Align::Left).priority(ColumnPriority::Rank(4)),
        Column::new("calls", "", Align::Right),
        Column::new("bytes", "", Align::Right).priority(ColumnPriority::Rank(1)),
        Column::new("typical", "", Align::Right).priority(ColumnPriority::Rank(3)),
        Column::new("mode", "", Align::Left).priority(ColumnPriority::Rank(2)),
        Column::new("time %", "", Align::Decimal),
    ]
}

fn row(stream: &TraceStream) -> TableRow {
    let counts = &stream.counts;
    let (mode, mark) = mode_with_mark(stream.mode);
    let much = if stream.share >= MUCH { Emphasis::Strong } else { Emphasis::Plain };
    let cells = vec![
        process_label(stream.comm, counts.pid).into(),
        if counts.is_known() { counts.fd.to_string() } else { ABSENT.into() }.into(),
        direction_sign(counts.direction).into(),
        if counts.is_known() { stream.path.to_string() } else { UNKNOWN_STREAM.into() }.into(),
        kind(stream.kind).into(),
        TableCell::new(calls(counts), much).marked(failures(stream)),
        bytes(counts.bytes).into(),
        stream.typical().map_or(ABSENT.into(), usual).into(),
        TableCell::from(mode).marked(mark),
        TableCell::new(percent(stream.share), much),
    ];
    TableRow { cells, ..TableRow::default() }
}

/// Returns the number of calls; a dash if only the offsets of the file are known.
fn calls(counts: &StreamCounts) -> String {
    if counts.calls == 0 && counts.bytes > 0 { ABSENT.into() } else { thousands(counts.calls) }
}

/// Returns the marks of a row: `!` for failed calls, `*` for sampled sizes, `≈` for estimated numbers.
fn failures(stream: &TraceStream) -> String {
    let failed = if stream.counts.errors > 0 { "!" } else { "" };
    let sampled = match (stream.counts.exact, stream.counts.estimated) {
        (true, _) => "",
        (false, false) => "*",
        (false, true) => "≈",
    };
    format!("{failed}{sampled}")
}

/// Returns the meaning of the marks that occur in the rows.
fn marks<'a>(streams: impl Iterator<Item = &'a TraceStream<'a>> + Clone) -> Vec<String> {
    let any = |is: fn(&TraceStream) -> bool| streams.clone().any(is);
    let deduced = |stream: &TraceStream| stream.mode.is_some_and(|mode| !mode.walked);
    let mut facts = vec!["time: cost of the calls, as a share of the run".to_string()];
    let syncs = streams.clone().map(|stream| stream.counts.syncs).sum();
    if syncs > 0 {
        facts.push(format!("including {} that waited for the device", counted(syncs, "sync")));
    }
    let marks = [
        (any(deduced), "~ deduced from the calls"),
        (any(|stream| stream.counts.errors > 0), "! some calls failed"),
        (
            any(|stream| !stream.counts.exact && !stream.counts.estimated),
            "* exact, but the typical size is sampled",
        ),
        (any(|stream| stream.counts.estimated), "≈ estimated from samples"),
    ];
    facts.extend(marks.into_iter().filter(|(is, _)| *is).map(|(_, text)| text.to_string()));
    facts
}

/// Returns the size of a usual call, marked if the median call may be larger.
fn usual((size, is_least): (u64, bool)) -> String {
    format!("{}{}", if is_least { "≥" } else { "" }, bytes(size))
}

/// Returns the files of the table that the run opened by several paths.
fn names<'a>(streams: impl Iterator<Item = &'a TraceStream<'a>>) -> Vec<Block> {
    let mut files: Vec<Vec<&Untrusted>> = streams
        .filter(|stream| !stream.also.is_empty())
        .map(|stream| {
            let mut names = stream.also.clone();
            names.push(stream.path);
            names.sort_unstable();
            names
        })
        .collect();
    files.sort_unstable();
    files.dedup();
    let sentence = |names: Vec<&Untrusted>| {
        let names: Vec<String> = names.into_iter().map(Untrusted::to_string).collect();
        Block::Aside(format!("one file: {}", names.join(" = ")))
    };
    files.into_iter().map(sentence).collect()
}

/// Largest number of other streams whose totals are one sentence; more get a table by location.
const FEW: usize = 9;

/// Returns the totals of the streams without a row, by location if they are many.
pub(super) fn rest(rest: &[&TraceStream], more: bool) -> Vec<Block> {
    if rest.is_empty() {
        return Vec::new();
    }
    let table = if rest.len() > FEW { locations::table(rest, more) } else { None };
    if let Some(table) = table {
        return vec![Block::Table(table), Block::Facts(vec!["--all shows each of them".into()])];
    }
    let sum = |of: fn(&TraceStream) -> u64| rest.iter().map(|stream| of(stream)).sum::<u64>();
    let share: f64 = rest.iter().map(|stream| stream.share).sum();
    let known = rest.iter().filter(|stream| stream.counts.is_known()).count() as u64;
    let streams = match known {
        0 => "calls whose stream is not known".into(),
        known => counted(known, if more { "more stream" } else { "stream" }),
    };
    vec![Block::Aside(format!(
        "{}{streams}: {}, {}, {} % of the time (--all shows {})",
        if more { "and " } else { "" },
        counted(sum(|stream| stream.counts.calls), "call"),
        bytes(sum(|stream| stream.counts.bytes)),
        percent(share.min(1.0)),
        if rest.len() == 1 { "it" } else { "them" },
    ))]
}
