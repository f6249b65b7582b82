//! Pipelines: writer, reader and buffers of each pipe, and where lines are delayed.

use weir_model::trace::{Hop, PipeEnd, Pipeline};

use super::labels::{bytes, mode, process_label};
use crate::block::Block;
use crate::number::ABSENT;
use crate::style::Emphasis;
use crate::table::{Align, Column, ColumnPriority, Heading, Table, TableCell, TableRow};

/// Returns all pipelines in one table, so that their columns align.
pub(super) fn blocks(pipelines: &[Pipeline]) -> Vec<Block> {
    let rows: Vec<TableRow> =
        pipelines.iter().enumerate().flat_map(|(number, pipeline)| rows(number, pipeline)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let headings = pipelines.iter().map(|pipeline| Heading { text: title(pipeline), series: None }).collect();
    vec![Block::Table(Table { columns: columns(), headings, rows, bars: None })]
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("writer", "", Align::Left),
        Column::new("buffer", "", Align::Left).priority(ColumnPriority::Rank(1)),
        Column::new("pending", "", Align::Right),
        Column::new("written", "", Align::Right).priority(ColumnPriority::Rank(2)),
        Column::new("", "", Align::Left),
        Column::new("reader", "", Align::Left),
        Column::new("buffer", "", Align::Left).priority(ColumnPriority::Rank(3)),
    ]
}

fn rows(heading: usize, pipeline: &Pipeline) -> impl Iterator<Item = TableRow> {
    pipeline.hops.iter().enumerate().map(move |(at, hop)| row(heading, hop, pipeline.waits_at == Some(at)))
}

fn row(heading: usize, hop: &Hop, waits_here: bool) -> TableRow {
    let Hop { writer, reader, .. } = hop;
    let emphasis = if waits_here && writer.waiting_bytes > 0 { Emphasis::Bad } else { Emphasis::Plain };
    let buffer = |end: &PipeEnd| end.mode.map_or(ABSENT.into(), |observed| mode(observed, end.buffer_bytes));
    let cells = vec![
        process_label(&writer.comm, writer.pid).into(),
        buffer(writer).into(),
        TableCell::new(bytes(writer.waiting_bytes), emphasis),
        bytes(writer.bytes).into(),
        "→".into(),
        process_label(&reader.comm, reader.pid).into(),
        buffer(reader).into(),
    ];
    // A long and a short form: the table shows the first one that fits.
    let remarks = if waits_here {
        vec!["◀ lines are delayed here".into(), "◀ delayed here".into()]
    } else {
        Vec::new()
    };
    TableRow { heading: Some(heading), cells, remarks, ..TableRow::default() }
}

/// Returns the title of a pipeline: `pipeline sort | uniq | head`.
fn title(pipeline: &Pipeline) -> String {
    let first = pipeline.hops.first().map(|hop| hop.writer.comm.to_string());
    let names = first.into_iter().chain(pipeline.hops.iter().map(|hop| hop.reader.comm.to_string()));
    format!("pipeline {}", names.collect::<Vec<_>>().join(" | "))
}
