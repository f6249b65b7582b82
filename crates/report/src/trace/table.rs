//! The table of streams: those that matter most one by one, the rest in a line.

use weir_model::trace::{Pipeline, Recording};
use weir_model::{Finding, Size};

use super::Trace;
use super::streams::Stream;
use super::words::{kind, plural, seen_mode, sign, thousands, who};
use crate::block::Block;
use crate::number::{ABSENT, percent};
use crate::style::Emphasis;
use crate::table::{Align, Cell, Column, Keep, Row, Table};

/// A share from which a stream stands out.
const MUCH: f64 = 0.2;
/// A share from which a stream is among the first.
const MATTERS: f64 = 0.01;
/// Input other than the standard one is worth a line from one in so many of all calls or of all bytes.
const PART: u64 = 20;

/// Is some finding about this stream?
pub(super) fn is_found(stream: &Stream, findings: &[Finding]) -> bool {
    let here = |finding: &&Finding| (finding.pid, finding.fd) == (stream.flow.pid, stream.flow.fd);
    // Numbers are given again: another file had this one too.
    findings.iter().filter(here).any(|finding| finding.path.is_empty() || finding.path == stream.path)
}

/// Is it an end of a pipeline?
fn is_piped(stream: &Stream, pipelines: &[Pipeline]) -> bool {
    let ends =
        pipelines.iter().flat_map(|pipeline| &pipeline.hops).flat_map(|hop| [&hop.writer, &hop.reader]);
    ends.into_iter().any(|end| (end.pid, end.fd) == (stream.flow.pid, stream.flow.fd))
}

/// How much a stream matters, the least number first; None: it is not worth a line.
fn rank(stream: &Stream, trace: &Trace, calls: u64, bytes: u64) -> Option<u8> {
    let much = stream.flow.calls * PART >= calls || stream.flow.bytes * PART >= bytes;
    match () {
        () if is_found(stream, trace.findings) => Some(0),
        () if stream.share >= MATTERS || is_piped(stream, trace.pipelines) => Some(1),
        () if !stream.flow.is_known() => much.then_some(4),
        () if stream.flow.fd <= 2 => Some(2),
        () if stream.writes() => Some(3),
        () => much.then_some(4),
    }
}

/// The streams that matter, at most `most`, in the order of `streams`. None: all of them.
pub(super) fn choose(streams: &[Stream], trace: &Trace, most: Option<usize>) -> Vec<usize> {
    let Some(most) = most else { return (0..streams.len()).collect() };
    let sum = |of: fn(&Stream) -> u64| streams.iter().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|stream| stream.flow.calls), sum(|stream| stream.flow.bytes));
    let ranked = streams.iter().enumerate();
    let ranked = ranked.filter_map(|(index, stream)| Some((rank(stream, trace, calls, bytes)?, index)));
    let mut ranked: Vec<(u8, usize)> = ranked.collect();
    ranked.sort_by(|&(rank, a), &(other, b)| {
        let (a, b) = (&streams[a], &streams[b]);
        rank.cmp(&other).then(b.cost_s.total_cmp(&a.cost_s)).then(b.flow.bytes.cmp(&a.flow.bytes))
    });
    let mut order: Vec<usize> = ranked.into_iter().map(|(_, index)| index).take(most).collect();
    order.sort_unstable();
    order
}

/// The table, and what stands below it.
pub(super) fn blocks(streams: &[Stream], shown: &[usize], recording: &Recording) -> Vec<Block> {
    if shown.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Row> = shown.iter().map(|&index| row(&streams[index])).collect();
    let mut blocks = vec![Block::Table(Table { columns: columns(), rows, ..Table::default() })];
    let rest: Vec<&Stream> = streams
        .iter()
        .enumerate()
        .filter(|(index, _)| !shown.contains(index))
        .map(|(_, stream)| stream)
        .collect();
    blocks.extend(rest_line(&rest, recording.elapsed_s).map(Block::Aside));
    let facts = marks(shown.iter().map(|&index| &streams[index]));
    blocks.extend((!facts.is_empty()).then_some(Block::Facts(facts)));
    blocks
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("process", "", Align::Left),
        Column::new("fd", "", Align::Right),
        Column::new("", "", Align::Left),
        Column::new("stream", "", Align::Path),
        Column::new("kind", "", Align::Left).keep(Keep::Rank(2)),
        Column::new("calls", "", Align::Right),
        Column::new("bytes", "", Align::Right),
        Column::new("typical", "", Align::Right).keep(Keep::Rank(1)),
        Column::new("mode", "", Align::Left),
        Column::new("time", "%", Align::Decimal),
    ]
}

fn row(stream: &Stream) -> Row {
    let flow = &stream.flow;
    let (mode, mark) = seen_mode(stream.mode);
    let much = if stream.share >= MUCH { Emphasis::Strong } else { Emphasis::Plain };
    let cells = vec![
        who(stream.comm, flow.pid).into(),
        if flow.is_known() { flow.fd.to_string() } else { ABSENT.into() }.into(),
        sign(flow.direction).into(),
        stream.path.into(),
        kind(stream.kind).into(),
        Cell::new(thousands(flow.calls), much).marked(failures(stream)),
        Size(flow.bytes).to_string().into(),
        stream.typical_bytes().map_or(String::new(), |bytes| Size(bytes).to_string()).into(),
        Cell::from(mode).marked(mark),
        Cell::new(percent(stream.share), much),
    ];
    Row { cells, ..Row::default() }
}

/// `!` where calls failed, `*` where sizes are from samples.
fn failures(stream: &Stream) -> String {
    let failed = if stream.flow.errors > 0 { "!" } else { "" };
    let sampled = if stream.flow.exact { "" } else { "*" };
    format!("{failed}{sampled}")
}

/// What the marks of the rows mean; only those that are there.
fn marks<'a>(streams: impl Iterator<Item = &'a Stream<'a>> + Clone) -> Vec<String> {
    let any = |is: fn(&Stream) -> bool| streams.clone().any(is);
    let deduced = |stream: &Stream| stream.mode.is_some_and(|mode| !mode.walked);
    let mut facts = vec!["time: what the calls cost here, of the whole run".to_string()];
    let marks = [
        (any(deduced), "~ deduced from the calls"),
        (any(|stream| stream.flow.errors > 0), "! some calls failed"),
        (any(|stream| !stream.flow.exact), "* sizes are from samples"),
    ];
    facts.extend(marks.into_iter().filter(|(is, _)| *is).map(|(_, text)| text.to_string()));
    facts
}

fn rest_line(rest: &[&Stream], elapsed_s: f64) -> Option<String> {
    let sum = |of: fn(&Stream) -> u64| rest.iter().map(|stream| of(stream)).sum::<u64>();
    let cost: f64 = rest.iter().map(|stream| stream.cost_s).sum();
    let share = if elapsed_s > 0.0 { (cost / elapsed_s).min(1.0) } else { 0.0 };
    (!rest.is_empty()).then(|| {
        format!(
            "and {} more: {}, {}, {} % of the time (--all shows them)",
            plural(rest.len() as u64, "stream"),
            plural(sum(|stream| stream.flow.calls), "call"),
            Size(sum(|stream| stream.flow.bytes)),
            percent(share)
        )
    })
}
