//! Pipelines (`a | b | c`): the two ends of each pipe, how they buffer, and where a finding says that lines are delayed.

use std::collections::BTreeMap;

use weir_model::trace::{
    Buffer, Hop, PipeEnd, Pipeline, SnapshotMoment, StreamCounts, StreamModes, mode_of_calls,
};
use weir_model::{Direction, Finding, Mode, Severity, StreamKind, Untrusted};

use crate::context::RuleContext;

/// Returns the pipelines of a run, in the order of their first processes. A full buffer alone delays nobody: without one
/// of these findings no hop is marked.
pub(crate) fn pipelines(context: &RuleContext, findings: &[Finding]) -> Vec<Pipeline> {
    let mut hops = hops(context);
    let mut pipelines = Vec::new();
    while let Some(first) = first_of_chain(&hops) {
        let mut chain = vec![hops.remove(first)];
        while let Some(next) = hops.iter().position(|hop| hop.writer.pid == chain[chain.len() - 1].reader.pid)
        {
            chain.push(hops.remove(next));
        }
        let waits_at = slowest_hop(&chain, findings);
        pipelines.push(Pipeline { hops: chain, waits_at });
    }
    pipelines
}

/// Returns every pipe from a standard output to a standard input, in the order of the writing processes.
fn hops(context: &RuleContext) -> Vec<Hop> {
    let mut ends: BTreeMap<String, (Vec<&StreamCounts>, Vec<&StreamCounts>)> = BTreeMap::new();
    for stream in &context.recording.counts {
        if context.kind(stream.file) == StreamKind::Pipe {
            let (writers, readers) = ends.entry(context.target_key(stream.file)).or_default();
            if stream.direction == Direction::In { readers.push(stream) } else { writers.push(stream) }
        }
    }
    let largest = |streams: Vec<&StreamCounts>, fd: i32| -> Option<StreamCounts> {
        streams.into_iter().filter(|stream| stream.fd == fd).max_by_key(|stream| stream.bytes).cloned()
    };
    let modes = context.recording.modes();
    let hop = |(writers, readers)| {
        let (writer, reader) = (largest(writers, 1)?, largest(readers, 0)?);
        (writer.pid != reader.pid).then(|| hop(context, &modes, &writer, &reader))
    };
    let mut hops: Vec<Hop> = ends.into_values().filter_map(hop).collect();
    let order = |pid: u32| context.recording.processes.iter().position(|process| process.pid == pid);
    hops.sort_by_key(|hop| order(hop.writer.pid));
    hops
}

fn hop(context: &RuleContext, modes: &StreamModes, writer: &StreamCounts, reader: &StreamCounts) -> Hop {
    let pipe = context.file(writer.file).map_or(Untrusted::placeholder("?"), |file| file.path.clone());
    let pipe_bytes = [writer, reader].iter().find_map(|stream| context.file(stream.file)?.pipe_bytes);
    // A program that flushes a full buffer after each line holds none.
    let is_flushed = matches!(mode_of_calls(writer), Some(Mode::Line | Mode::None));
    let (writer, reader) = (pipe_end(context, modes, writer), pipe_end(context, modes, reader));
    let holds_lines = writer.mode == Some(Mode::Full) && !is_flushed || writer.waiting_bytes > 0;
    Hop { pipe, pipe_bytes, writer, reader, holds_lines }
}

fn pipe_end(context: &RuleContext, modes: &StreamModes, stream: &StreamCounts) -> PipeEnd {
    let snapshots = context.snapshots(stream.pid).iter().filter(|snapshot| {
        let image = context.image_at(stream.pid, snapshot.at_s).map(|(index, _)| index as u32);
        image == Some(stream.image)
    });
    let buffers =
        snapshots.flat_map(|snapshot| snapshot.buffers.iter().map(move |buffer| (snapshot, buffer)));
    let buffers = buffers.filter(|(_, buffer)| buffer.fd == stream.fd);
    let output = stream.direction != Direction::In;
    let waiting = buffers.filter(|(snapshot, _)| snapshot.moment == SnapshotMoment::Sample || !output);
    let bytes = |buffer: &Buffer| if output { buffer.pending_bytes } else { buffer.unread_bytes };
    // The sizes of reads show what arrived, not a buffer.
    let observed = modes.of(stream).filter(|observed| output || observed.walked);
    let deduced_bytes = observed
        .filter(|observed| !observed.walked && observed.mode == Mode::Full && stream.max_requested_bytes > 0)
        .map(|_| stream.max_requested_bytes);
    PipeEnd {
        pid: stream.pid,
        comm: context
            .process(stream.pid)
            .map_or(Untrusted::placeholder("?"), |process| process.comm().clone()),
        fd: stream.fd,
        calls: stream.calls,
        bytes: stream.bytes,
        mean_bytes: stream.mean_bytes(),
        mode: observed.map(|observed| observed.mode),
        buffer_bytes: observed.and_then(|observed| observed.buffer_bytes).or(deduced_bytes),
        waiting_bytes: waiting.map(|(_, buffer)| bytes(buffer)).max().unwrap_or(0),
    }
}

/// Returns the index of a hop whose writer reads from no other hop; in a ring, that of any hop.
fn first_of_chain(hops: &[Hop]) -> Option<usize> {
    let starts = |hop: &Hop| !hops.iter().any(|other| other.reader.pid == hop.writer.pid);
    hops.iter().position(starts).or(if hops.is_empty() { None } else { Some(0) })
}

/// The findings that say that a program's output comes late.
const DELAYS: [&str; 2] = ["stuck-output", "held-output"];

/// Returns the index of the hop where a line waits longest, among those whose writer has such a finding: the one with
/// most pending bytes, else with the largest buffer.
fn slowest_hop(hops: &[Hop], findings: &[Finding]) -> Option<usize> {
    let delays =
        |finding: &&Finding| finding.severity > Severity::Info && DELAYS.contains(&finding.id.as_str());
    let is_delayed = |hop: &Hop| {
        let end = (hop.writer.pid, hop.writer.fd);
        findings.iter().filter(delays).any(|finding| (finding.pid, finding.fd) == end)
    };
    let delayed = hops.iter().enumerate().filter(|(_, hop)| is_delayed(hop));
    delayed.max_by_key(|(_, hop)| (hop.writer.waiting_bytes, hop.writer.buffer_bytes)).map(|(index, _)| index)
}
