//! The report, the document's text and the timeline of `weir trace`.

mod choice;
mod findings;
mod labels;
mod listed_stream;
mod locations;
mod notes;
mod other_calls;
mod page;
mod page_streams;
mod pictures;
mod pipeline_picture;
mod pipelines;
mod sizes;
mod startup;
mod table;
mod text;
mod timeline;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use weir_model::trace::TraceResult;

use crate::block::Block;
use crate::style::Style;
use crate::terminal;

use choice::ChosenStreams;
use listed_stream::{ListContext, ListedStream};

pub use page::{page, page_title};
pub use text::{document_text, streams_text};
pub use timeline::timeline;

/// Streams in the table if not all are requested: the table then fits on a screen of 40 rows.
const MAX_STREAMS: usize = 12;

/// Returns all blocks of a result in reading order; `all` shows every stream.
pub fn blocks(trace: &TraceResult, all: bool) -> Vec<Block> {
    let streams = &trace.streams;
    let chosen = if all { ChosenStreams::all(streams.len()) } else { chosen(trace) };
    let mut blocks = notes::verdict(trace, streams);
    blocks.extend(table::blocks(trace, &chosen));
    blocks.extend(sizes::blocks(streams, &chosen.rows, trace.findings, all));
    blocks.extend(findings::blocks(trace, streams, all));
    blocks.extend(pipelines::blocks(trace.pipelines));
    blocks.extend(other_calls::blocks(trace.recording, all));
    blocks.extend(notes::gaps(trace.recording));
    blocks.push(notes::backend(trace.recording));
    blocks
}

/// Chooses the streams of the report.
fn chosen(trace: &TraceResult) -> ChosenStreams {
    let listed: Vec<ListedStream> = trace.streams.iter().map(ListedStream::from).collect();
    let processes = &trace.recording.processes;
    let context = ListContext { processes, findings: trace.findings, pipelines: trace.pipelines };
    ChosenStreams::of(&listed, &context, MAX_STREAMS)
}

/// Returns the report as text for a terminal; `all` shows every stream. A report that is longer than the terminal repeats
/// the verdict at its end: the last lines are what the reader sees first.
pub fn screen(trace: &TraceResult, all: bool, style: &Style) -> String {
    let text = terminal::text(&blocks(trace, all), style);
    if text.lines().count() < style.rows {
        return text;
    }
    text + "\n" + &terminal::text(&notes::verdict(trace, &trace.streams), style)
}
