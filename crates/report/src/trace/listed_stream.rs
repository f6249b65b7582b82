//! The fields of a stream that a list of streams needs: the part that a recording's streams and a document's streams have in common.

use weir_model::trace::document::StreamRow;
use weir_model::trace::{Pipeline, Process, StreamCounts, TraceStream};
use weir_model::{Direction, Finding, StreamKind, Untrusted};

use super::labels::{bytes, counted};
use crate::number::percent;

/// A stream of the terminal's report or of a page. One code chooses the streams of both.
#[derive(Debug)]
pub(super) struct ListedStream<'a> {
    pub pid: u32,
    pub fd: i32,
    /// Index of the program in [`Process::images`]; `None` in the documents of older versions.
    pub image: Option<usize>,
    pub path: &'a Untrusted,
    also: Vec<&'a Untrusted>,
    pub kind: StreamKind,
    pub direction: Direction,
    /// Number of open files behind the stream.
    pub openings: u64,
    pub calls: u64,
    pub bytes: u64,
    pub cost_s: f64,
    /// `cost_s` as a share of the run, 0 to 1.
    pub share: f64,
}

/// The inputs of a choice of streams, besides the streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListContext<'a> {
    pub processes: &'a [Process],
    pub findings: &'a [Finding],
    pub pipelines: &'a [Pipeline],
}

impl<'a> From<&'a TraceStream<'a>> for ListedStream<'a> {
    fn from(stream: &'a TraceStream<'a>) -> Self {
        let counts = &stream.counts;
        Self {
            pid: counts.pid,
            fd: counts.fd,
            image: Some(counts.image as usize),
            path: stream.path,
            also: stream.also.clone(),
            kind: stream.kind,
            direction: counts.direction,
            openings: stream.openings.len() as u64,
            calls: counts.calls,
            bytes: counts.bytes,
            cost_s: stream.cost_s,
            share: stream.share,
        }
    }
}

impl<'a> From<&'a StreamRow> for ListedStream<'a> {
    fn from(stream: &'a StreamRow) -> Self {
        Self {
            pid: stream.pid,
            fd: stream.fd,
            image: stream.image.map(|image| image as usize),
            path: &stream.path,
            also: stream.also.iter().collect(),
            kind: stream.kind,
            direction: stream.direction,
            openings: stream.openings,
            calls: stream.calls,
            bytes: stream.bytes,
            cost_s: stream.cost_s,
            share: stream.share,
        }
    }
}

/// Returns the time at which the process of a finding ran the program that the finding is about: the finding's own time, or the
/// start of the program that made most of the calls.
pub(super) fn time_of_program<'a>(
    finding: &Finding,
    process: Option<&Process>,
    streams: impl Iterator<Item = ListedStream<'a>>,
) -> Option<f64> {
    let own = ["at_s", "since_s"].iter().find_map(|name| finding.evidence.get(*name).copied());
    let busiest = || streams.filter(|stream| stream.is_of(finding)).max_by_key(|stream| stream.calls);
    own.or_else(|| Some(process?.images.get(busiest()?.image?)?.started_s))
}

impl ListedStream<'_> {
    /// Returns whether the stream of the calls is known.
    pub fn is_known(&self) -> bool {
        self.fd != StreamCounts::UNKNOWN
    }

    /// Returns whether the program writes to the stream.
    pub fn writes(&self) -> bool {
        self.direction == Direction::Out
    }

    /// Returns whether a finding is about the stream.
    pub fn is_of(&self, finding: &Finding) -> bool {
        // The kernel reuses descriptors, so the path must match too.
        let named = |path: &Untrusted| path.is_empty() || path == self.path || self.also.contains(&path);
        (finding.pid, finding.fd) == (self.pid, self.fd) && named(&finding.path)
    }

    /// Returns whether any finding is about the stream.
    pub fn is_found(&self, findings: &[Finding]) -> bool {
        findings.iter().any(|finding| self.is_of(finding))
    }

    /// Returns whether the stream is an end of a pipeline.
    pub fn is_piped(&self, pipelines: &[Pipeline]) -> bool {
        let ends =
            pipelines.iter().flat_map(|pipeline| &pipeline.hops).flat_map(|hop| [&hop.writer, &hop.reader]);
        ends.into_iter().any(|end| (end.pid, end.fd) == (self.pid, self.fd))
    }
}

/// Returns calls, bytes and time of some streams as text.
pub(super) fn totals(streams: &[ListedStream]) -> String {
    let sum = |of: fn(&ListedStream) -> u64| streams.iter().map(of).sum::<u64>();
    let share: f64 = streams.iter().map(|stream| stream.share).sum();
    format!(
        "{}, {}, {} % of the time",
        counted(sum(|stream| stream.calls), "call"),
        bytes(sum(|stream| stream.bytes)),
        percent(share.min(1.0)),
    )
}
