//! The table of streams: the most important ones, and the totals of the others.

use weir_model::Untrusted;
use weir_model::number::Certainty;
use weir_model::trace::{StreamCounts, TraceStream};

use super::choice::ChosenStreams;
use super::labels::{
    UNKNOWN_STREAM, bytes, counted, direction_sign, kind, mode_with_mark, process_label, thousands,
};
use super::listed_stream::{self, ListedStream};
use super::{TraceResult, locations, startup};
use crate::block::Block;
use crate::number::{ABSENT, percent};
use crate::style::Emphasis;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};

/// Smallest share of the run's time that is emphasised.
const MUCH: f64 = 0.2;
/// Returns the table, its notes and the totals of the other streams.
pub(super) fn blocks(trace: &TraceResult, chosen: &ChosenStreams) -> Vec<Block> {
    let (streams, shown) = (&trace.streams, &chosen.rows);
    let rows: Vec<TableRow> = shown.iter().map(|&index| row(&streams[index])).collect();
    let rest: Vec<&TraceStream> = chosen.rest.iter().map(|&index| &streams[index]).collect();
    let startup: Vec<ListedStream> = chosen.startup.iter().map(|&index| (&streams[index]).into()).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Table(Table { columns: columns(), rows, ..Table::default() }));
        blocks.push(Block::Facts(marks(shown.iter().map(|&index| &streams[index]))));
        blocks.extend(names(shown.iter().map(|&index| &streams[index])));
    }
    blocks.extend(self::rest(&rest, !shown.is_empty()));
    blocks.extend(
        startup::totals(&startup)
            .map(|totals| Block::Aside(format!("{totals}{}", shown_by_all(startup.len())))),
    );
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
        format!("{}{}", least(counts), bytes(counts.bytes)).into(),
        stream.typical().map_or(ABSENT.into(), usual).into(),
        TableCell::from(mode).marked(mark),
        TableCell::new(percent(stream.share), much),
    ];
    TableRow { cells, ..TableRow::default() }
}

/// Returns the number of calls; a dash if only the offsets of the file are known.
fn calls(counts: &StreamCounts) -> String {
    match counts.calls == 0 && counts.bytes > 0 {
        true => ABSENT.into(),
        false => format!("{}{}", least(counts), thousands(counts.calls)),
    }
}

/// Returns the mark before numbers to which unknown calls may have to be added.
fn least(counts: &StreamCounts) -> &'static str {
    if counts.at_least { "≥" } else { "" }
}

/// Returns the marks of a row: `!` for failed calls, `*` for sampled sizes, `≈` for estimated numbers.
fn failures(stream: &TraceStream) -> String {
    let failed = if stream.counts.errors > 0 { "!" } else { "" };
    let sampled = match (stream.counts.exact, stream.counts.certainty()) {
        (true, _) | (_, Certainty::AtLeast) => "",
        (false, Certainty::Exact) => "*",
        (false, Certainty::About) => "≈",
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
        (any(|stream| stream.counts.certainty() == Certainty::About), "≈ estimated from samples"),
        (
            any(|stream| stream.counts.at_least),
            "≥ at least about: some of the unknown calls may be of this stream",
        ),
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
    let known = rest.iter().filter(|stream| stream.counts.is_known()).count() as u64;
    let streams = match known {
        0 => "calls whose stream is not known".into(),
        known => counted(known, if more { "more stream" } else { "stream" }),
    };
    let and = if more { "and " } else { "" };
    let listed: Vec<ListedStream> = rest.iter().map(|stream| (*stream).into()).collect();
    let totals = listed_stream::totals(&listed);
    vec![Block::Aside(format!("{and}{streams}: {totals}{}", shown_by_all(rest.len())))]
}

/// Returns how a number of streams without a row is shown.
fn shown_by_all(streams: usize) -> String {
    format!(" (--all shows {})", if streams == 1 { "it" } else { "them" })
}
