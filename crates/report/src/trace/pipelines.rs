//! Pipelines as one picture each: who writes to whom, how, and where bytes wait.

use serde::{Deserialize, Serialize};
use weir_model::{Mode, Size};

use super::words::{mode, who};
use crate::block::Block;
use crate::style::Emphasis;
use crate::table::{Align, Cell, Column, Heading, Keep, Row, Table};

/// A program at one end of a hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
}

/// One pipe between two programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Who writes.
    pub writer: End,
    /// Who reads.
    pub reader: End,
    /// How the writer buffers; None: not known.
    pub mode: Option<Mode>,
    /// Size of the writer's buffer, where known.
    pub buffer_bytes: Option<u64>,
    /// Most bytes that were seen waiting in it; None: nobody could look.
    pub waiting_bytes: Option<u64>,
    /// Bytes that went through.
    pub bytes: u64,
    /// A line that enters here waits for more to come.
    pub line_waits: bool,
}

/// Programs joined by pipes, from the first writer to the last reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its pipes in order.
    pub hops: Vec<Hop>,
}

/// All pipelines in one table, so that their columns align.
pub(super) fn blocks(pipelines: &[Pipeline]) -> Vec<Block> {
    let rows: Vec<Row> = pipelines
        .iter()
        .enumerate()
        .flat_map(|(number, pipeline)| pipeline.hops.iter().map(move |hop| row(number, hop)))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let headings = pipelines.iter().map(|pipeline| Heading { text: title(pipeline), series: None }).collect();
    vec![Block::Table(Table { columns: columns(), headings, rows, bars: None })]
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("writer", "", Align::Left),
        Column::new("buffer", "", Align::Left),
        Column::new("waiting", "", Align::Right),
        Column::new("through", "", Align::Right).keep(Keep::Rank(1)),
        Column::new("", "", Align::Left),
        Column::new("reader", "", Align::Left),
    ]
}

fn row(heading: usize, hop: &Hop) -> Row {
    let waits = hop.waiting_bytes.is_some_and(|bytes| bytes > 0);
    let emphasis = if waits { Emphasis::Bad } else { Emphasis::Plain };
    let cells = vec![
        who(&hop.writer.comm, hop.writer.pid).into(),
        hop.mode.map_or("?".into(), |seen| mode(seen, hop.buffer_bytes)).into(),
        Cell::new(hop.waiting_bytes.map_or("?".into(), |bytes| Size(bytes).to_string()), emphasis),
        Size(hop.bytes).to_string().into(),
        "→".into(),
        who(&hop.reader.comm, hop.reader.pid).into(),
    ];
    let remarks =
        if hop.line_waits { vec!["◀ a line waits here".into(), "◀".into()] } else { Vec::new() };
    Row { heading: Some(heading), cells, remarks, ..Row::default() }
}

/// `sort | uniq | head`.
fn title(pipeline: &Pipeline) -> String {
    let first = pipeline.hops.first().map(|hop| hop.writer.comm.as_str());
    let names = first.into_iter().chain(pipeline.hops.iter().map(|hop| hop.reader.comm.as_str()));
    format!("pipeline {}", names.collect::<Vec<_>>().join(" | "))
}
