//! What `weir trace` shows of a [`Recording`] and of what was found in it.

mod document;
mod findings;
mod notes;
mod others;
mod pipelines;
mod places;
mod sizes;
mod streams;
mod table;
mod text;
mod timeline;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use weir_model::Finding;
use weir_model::trace::{Recording, Streams};

use crate::block::Block;
use crate::style::Style;
use crate::terminal;

pub use document::{Document, SCHEMA, document};
pub use streams::{Stream, streams};
pub use text::{document_text, streams_text};
pub use timeline::timeline;
pub use weir_model::trace::{Hop, PipeEnd, Pipeline};

/// Streams that are shown where not all are asked for.
const MOST_STREAMS: usize = 12;

/// A recording with what was concluded from it.
#[derive(Debug, Clone)]
pub struct Trace<'a> {
    /// What was seen.
    pub recording: &'a Recording,
    /// What is wrong.
    pub findings: &'a [Finding],
    /// The same in one or two sentences, one a line, commands on lines of their own; empty: nothing is wrong.
    pub verdict: String,
    /// Who wrote into whom.
    pub pipelines: &'a [Pipeline],
    /// The recording's, as everything that is shown of it has them.
    pub streams: Vec<Stream<'a>>,
}

impl<'a> Trace<'a> {
    /// With the streams of the recording.
    pub fn new(
        recording: &'a Recording,
        findings: &'a [Finding],
        verdict: impl Into<String>,
        pipelines: &'a [Pipeline],
    ) -> Self {
        let streams = streams(&Streams::of(recording));
        Self { recording, findings, verdict: verdict.into(), pipelines, streams }
    }
}

/// Everything that is to be said of a run, in the order of reading; `all` leaves no stream out.
pub fn blocks(trace: &Trace, all: bool) -> Vec<Block> {
    let streams = &trace.streams;
    let shown = table::choose(streams, trace, (!all).then_some(MOST_STREAMS));
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
pub fn screen(trace: &Trace, all: bool, style: &Style) -> String {
    terminal::text(&blocks(trace, all), style)
}
