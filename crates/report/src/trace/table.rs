//! The table of streams: those that matter most one by one, the rest in a line.

use weir_model::Finding;
use weir_model::trace::{Pipeline, StreamCounts};

use super::words::{bytes, kind, plural, seen_mode, sign, thousands, who};
use super::{TraceResult, places};
use crate::block::Block;
use crate::number::{ABSENT, percent};
use crate::style::Emphasis;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};
use weir_model::trace::TraceStream;

/// A share from which a stream stands out.
const MUCH: f64 = 0.2;
/// A share from which a stream is among the first.
const MATTERS: f64 = 0.01;
/// Input other than the standard one is worth a line from one in so many of all calls or of all bytes …
const PART: u64 = 20;
/// … or, where not all streams have one: of many that are alike none says more than their sum by place.
const LARGE_PART: u64 = 5;

/// Is this finding about this stream?
pub(super) fn is_of(finding: &Finding, stream: &TraceStream) -> bool {
    // Numbers are given again: another file had this one too.
    let named = |path: &str| path.is_empty() || path == stream.path || stream.also.contains(&path);
    (finding.pid, finding.fd) == (stream.counts.pid, stream.counts.fd) && named(&finding.path)
}

/// Is some finding about this stream?
pub(super) fn is_found(stream: &TraceStream, findings: &[Finding]) -> bool {
    findings.iter().any(|finding| is_of(finding, stream))
}

/// Is it an end of a pipeline?
fn is_piped(stream: &TraceStream, pipelines: &[Pipeline]) -> bool {
    let ends =
        pipelines.iter().flat_map(|pipeline| &pipeline.hops).flat_map(|hop| [&hop.writer, &hop.reader]);
    ends.into_iter().any(|end| (end.pid, end.fd) == (stream.counts.pid, stream.counts.fd))
}

/// The rank of output that is none of what comes before it.
const OUTPUT: u8 = 3;
/// More streams of such output are many alike.
const OUTPUTS: usize = 4;

/// How much a stream matters, the least number first; None: it is not worth a line.
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

/// The streams that matter, at most `most`, in the order of `streams`. None: all of them.
pub(super) fn choose(streams: &[TraceStream], trace: &TraceResult, most: Option<usize>) -> Vec<usize> {
    let Some(most) = most else { return (0..streams.len()).collect() };
    let sum = |of: fn(&TraceStream) -> u64| streams.iter().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|stream| stream.counts.calls), sum(|stream| stream.counts.bytes));
    let part = if streams.len() <= most { PART } else { LARGE_PART };
    let much = (calls.div_ceil(part), bytes.div_ceil(part));
    let ranked = streams.iter().enumerate();
    let ranked = ranked.filter_map(|(index, stream)| Some((rank(stream, trace, much)?, index)));
    let mut ranked: Vec<(u8, usize)> = ranked.collect();
    let outputs = ranked.iter().filter(|(rank, _)| *rank == OUTPUT).count();
    if streams.len() > most && outputs > OUTPUTS {
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

/// The table, what stands below it, and the streams that have no line in it.
pub(super) fn blocks(streams: &[TraceStream], shown: &[usize]) -> Vec<Block> {
    let rows: Vec<TableRow> = shown.iter().map(|&index| row(&streams[index])).collect();
    let mut is_shown = vec![false; streams.len()];
    shown.iter().for_each(|&index| is_shown[index] = true);
    let rest = streams.iter().zip(&is_shown).filter(|(_, is_shown)| !**is_shown);
    let rest: Vec<&TraceStream> = rest.map(|(stream, _)| stream).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Table(Table { columns: columns(), rows, ..Table::default() }));
        blocks.push(Block::Facts(marks(shown.iter().map(|&index| &streams[index]))));
        blocks.extend(names(shown.iter().map(|&index| &streams[index])));
    }
    blocks.extend(self::rest(&rest, !shown.is_empty()));
    blocks
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("process", "", Align::Left),
        Column::new("fd", "", Align::Right),
        Column::new("", "", Align::Left),
        Column::new("stream", "", Align::Path),
        Column::new("kind", "", Align::Left).priority(ColumnPriority::Rank(2)),
        Column::new("calls", "", Align::Right),
        Column::new("bytes", "", Align::Right),
        Column::new("typical", "", Align::Right).priority(ColumnPriority::Rank(1)),
        Column::new("mode", "", Align::Left),
        Column::new("time", "%", Align::Decimal),
    ]
}

fn row(stream: &TraceStream) -> TableRow {
    let counts = &stream.counts;
    let (mode, mark) = seen_mode(stream.mode);
    let much = if stream.share >= MUCH { Emphasis::Strong } else { Emphasis::Plain };
    let cells = vec![
        who(stream.comm, counts.pid).into(),
        if counts.is_known() { counts.fd.to_string() } else { ABSENT.into() }.into(),
        sign(counts.direction).into(),
        stream.path.into(),
        kind(stream.kind).into(),
        TableCell::new(calls(counts), much).marked(failures(stream)),
        bytes(counts.bytes).into(),
        stream.typical_bytes().map_or(ABSENT.into(), bytes).into(),
        TableCell::from(mode).marked(mark),
        TableCell::new(percent(stream.share), much),
    ];
    TableRow { cells, ..TableRow::default() }
}

/// How many calls; from positions alone nobody knows.
fn calls(counts: &StreamCounts) -> String {
    if counts.calls == 0 && counts.bytes > 0 { ABSENT.into() } else { thousands(counts.calls) }
}

/// `!` where calls failed, `*` where they were seen in part, `≈` where their number is not exact either.
fn failures(stream: &TraceStream) -> String {
    let failed = if stream.counts.errors > 0 { "!" } else { "" };
    let sampled = match (stream.counts.exact, stream.counts.estimated) {
        (true, _) => "",
        (false, false) => "*",
        (false, true) => "≈",
    };
    format!("{failed}{sampled}")
}

/// What the marks of the rows mean; only those that are there.
fn marks<'a>(streams: impl Iterator<Item = &'a TraceStream<'a>> + Clone) -> Vec<String> {
    let any = |is: fn(&TraceStream) -> bool| streams.clone().any(is);
    let deduced = |stream: &TraceStream| stream.mode.is_some_and(|mode| !mode.walked);
    let mut facts = vec!["time: what the calls cost here, of the whole run".to_string()];
    let syncs = streams.clone().map(|stream| stream.counts.syncs).sum();
    if syncs > 0 {
        facts.push(format!("{} that waited for the device among them", plural(syncs, "sync")));
    }
    let marks = [
        (any(deduced), "~ deduced from the calls"),
        (any(|stream| stream.counts.errors > 0), "! some calls failed"),
        (
            any(|stream| !stream.counts.exact && !stream.counts.estimated),
            "* exact, but what is typical is from samples",
        ),
        (any(|stream| stream.counts.estimated), "≈ about so many, by samples"),
    ];
    facts.extend(marks.into_iter().filter(|(is, _)| *is).map(|(_, text)| text.to_string()));
    facts
}

/// Files of the table that were opened by several names.
fn names<'a>(streams: impl Iterator<Item = &'a TraceStream<'a>>) -> Vec<Block> {
    let mut files: Vec<Vec<&str>> = streams
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
    files.into_iter().map(|names| Block::Aside(format!("one file: {}", names.join(" = ")))).collect()
}

/// With so few streams left, where they lead is not worth a table.
const FEW: usize = 9;

/// The streams that have no line: their sum, and where many of them lead.
fn rest(rest: &[&TraceStream], more: bool) -> Vec<Block> {
    if rest.is_empty() {
        return Vec::new();
    }
    let table = if rest.len() > FEW { places::table(rest, more) } else { None };
    if let Some(table) = table {
        return vec![Block::Table(table), Block::Facts(vec!["--all shows each of them".into()])];
    }
    let sum = |of: fn(&TraceStream) -> u64| rest.iter().map(|stream| of(stream)).sum::<u64>();
    let share: f64 = rest.iter().map(|stream| stream.share).sum();
    let known = rest.iter().filter(|stream| stream.counts.is_known()).count() as u64;
    let streams = plural(known, if more { "more stream" } else { "stream" });
    vec![Block::Aside(format!(
        "{}{streams}: {}, {}, {} % of the time (--all shows {})",
        if more { "and " } else { "" },
        plural(sum(|stream| stream.counts.calls), "call"),
        bytes(sum(|stream| stream.counts.bytes)),
        percent(share.min(1.0)),
        if rest.len() == 1 { "it" } else { "them" },
    ))]
}
