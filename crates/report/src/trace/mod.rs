//! What `weir trace` shows of a [`Recording`] and of what was found in it.

mod findings;
mod notes;
mod others;
mod pipelines;
mod places;
mod sizes;
mod table;
mod text;
mod timeline;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use weir_model::trace::TraceResult;

use crate::block::Block;
use crate::style::Style;
use crate::terminal;

pub use text::{document_text, streams_text};
pub use timeline::timeline;

/// Streams in the table if not all are requested: the table then fits on a screen of 40 rows.
const STREAMS_MOST: usize = 12;

/// Everything that is to be said of a run, in the order of reading; `all` leaves no stream out.
pub fn blocks(trace: &TraceResult, all: bool) -> Vec<Block> {
    let streams = &trace.streams;
    let shown = table::choose(streams, trace, (!all).then_some(STREAMS_MOST));
    let mut blocks = notes::verdict(trace, streams);
    blocks.extend(table::blocks(streams, &shown));
    blocks.extend(sizes::blocks(streams, &shown, trace.findings, all));
    blocks.extend(findings::blocks(trace, streams));
    blocks.extend(pipelines::blocks(trace.pipelines));
    blocks.extend(others::blocks(trace.recording, all));
    blocks.extend(notes::blind(trace.recording));
    blocks.push(notes::engine(trace.recording));
    blocks
}

/// The run as a terminal shows it.
pub fn screen(trace: &TraceResult, all: bool, style: &Style) -> String {
    terminal::text(&blocks(trace, all), style)
}
