//! The streams of the page of `weir trace`: pictures and a table of the important ones, and the others in closed parts.

use weir_model::Size;
use weir_model::number::Certainty;
use weir_model::trace::TraceDocument;
use weir_model::trace::document::StreamRow;

use super::choice::ChosenStreams;
use super::labels::{bytes, counted, direction_sign, kind, mode, process_label, thousands};
use super::listed_stream::{ListContext, ListedStream};
use super::page::MAX_ROWS;
use super::{listed_stream, pictures, startup};
use crate::block::Block;
use crate::number::{ABSENT, percent};
use crate::page::Body;
use crate::table::{Align, Column, Table, TableCell, TableRow};

/// The streams of a page by the way in which they are shown: indexes, those with a finding first.
pub(super) struct PageStreams {
    /// Streams that are visible at once, at most [`pictures::MAX_LANES`].
    pub shown: Vec<usize>,
    closed: Vec<ClosedStreams>,
}

/// Streams in a closed part of the page.
struct ClosedStreams {
    title: String,
    /// Prefix of the identifiers of its pictures.
    prefix: &'static str,
    streams: Vec<usize>,
}

impl PageStreams {
    /// Chooses the streams as the terminal's report does.
    pub fn of(document: &TraceDocument) -> Self {
        let listed: Vec<ListedStream> = document.streams.iter().map(ListedStream::from).collect();
        let context = ListContext {
            processes: &document.processes,
            findings: &document.findings,
            pipelines: &document.pipelines,
        };
        let chosen = ChosenStreams::of(&listed, &context, pictures::MAX_LANES);
        let in_order = |mut streams: Vec<usize>| {
            streams.sort_by_key(|&at| !listed[at].is_found(&document.findings));
            streams
        };
        let pick = |streams: &[usize]| {
            let some = streams.iter().map(|&at| ListedStream::from(&document.streams[at]));
            some.collect::<Vec<ListedStream>>()
        };
        let mut closed = Vec::new();
        if !chosen.rest.is_empty() {
            let name = if chosen.rows.is_empty() { "stream" } else { "more stream" };
            let number = counted(chosen.rest.len() as u64, name);
            let title = format!("{number}: {}", listed_stream::totals(&pick(&chosen.rest)));
            closed.push(ClosedStreams { title, prefix: "rest-", streams: in_order(chosen.rest) });
        }
        if let Some(title) = startup::totals(&pick(&chosen.startup)) {
            closed.push(ClosedStreams { title, prefix: "startup-", streams: chosen.startup });
        }
        Self { shown: in_order(chosen.rows), closed }
    }

    /// Adds the streams to the page.
    pub fn add(&self, document: &TraceDocument, body: &mut Body, prefix: &str) {
        add_streams(document, &self.shown, body, [prefix, ""]);
        pictures::sizes(document, &self.shown, prefix)
            .into_iter()
            .for_each(|picture| body.picture(picture, &[]));
        for part in &self.closed {
            body.closed(&part.title, |body| {
                add_streams(document, &part.streams, body, [prefix, part.prefix])
            });
        }
    }
}

/// Adds pictures of some streams, with their table behind the first. `prefix`: of the identifiers of the page's part, and of
/// these pictures.
fn add_streams(document: &TraceDocument, streams: &[usize], body: &mut Body, prefix: [&str; 2]) {
    if streams.is_empty() {
        return;
    }
    let findings = &document.findings;
    let mut rows: Vec<&StreamRow> = streams.iter().map(|&at| &document.streams[at]).collect();
    let is_found = |row: &StreamRow| ListedStream::from(row).is_found(findings);
    rows.sort_by(|a, b| is_found(b).cmp(&is_found(a)).then(b.cost_s.total_cmp(&a.cost_s)));
    let mut behind = vec![Block::Table(table(rows.into_iter()))];
    let timeline = pictures::timeline(document, streams, prefix);
    let costs = pictures::costs(document, streams, prefix);
    for picture in [timeline, costs].into_iter().flatten() {
        body.picture(picture, &std::mem::take(&mut behind));
    }
    body.blocks(&behind);
}

/// Returns a table of some streams in their order.
fn table<'a>(streams: impl Iterator<Item = &'a StreamRow>) -> Table {
    let columns = vec![
        Column::new("process", "", Align::Left),
        Column::new("fd", "", Align::Right),
        Column::new("", "", Align::Left),
        Column::new("stream", "", Align::Path),
        Column::new("kind", "", Align::Left),
        Column::new("calls", "", Align::Right),
        Column::new("bytes", "", Align::Right),
        Column::new("typical", "", Align::Right),
        Column::new("mode", "", Align::Left),
        Column::new("share", "%", Align::Right),
    ];
    let row = |stream: &StreamRow| {
        let about = match Certainty::of_flags(stream.estimated, stream.at_least) {
            Certainty::Exact => "",
            Certainty::About => "about ",
            Certainty::AtLeast => "at least about ",
        };
        let deduced = if stream.mode.is_some() && !stream.mode_seen { "~" } else { "" };
        let cells = vec![
            process_label(&stream.comm, stream.pid).into(),
            if stream.fd >= 0 { stream.fd.to_string() } else { ABSENT.into() }.into(),
            direction_sign(stream.direction).into(),
            stream.path.to_string().into(),
            kind(stream.kind).into(),
            format!("{about}{}", thousands(stream.calls)).into(),
            format!("{about}{}", bytes(stream.bytes)).into(),
            stream.typical_bytes.map_or(ABSENT.into(), |typical| Size(typical).to_string()).into(),
            TableCell::from(stream.mode.map_or(ABSENT.into(), |one| mode(one, stream.buffer_bytes)))
                .marked(deduced),
            percent(stream.share).into(),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: streams.take(MAX_ROWS).map(row).collect(), ..Table::default() }
}
