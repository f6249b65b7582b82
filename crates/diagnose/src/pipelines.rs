//! `a | b | c`: each hop's two ends, how they buffer, and where a line waits.

use std::collections::BTreeMap;

use weir_model::trace::{Hop, PipeEnd, Pipeline, SnapshotMoment, StreamCounts};
use weir_model::{Direction, Mode, StreamKind};

use crate::context::Context;

/// A buffer smaller than this shows in no pattern of calls.
const BLOCK: f64 = 1024.0;

/// The pipelines of a run, in the order of their first processes.
pub(crate) fn pipelines(context: &Context) -> Vec<Pipeline> {
    let mut hops = hops(context);
    let mut all = Vec::new();
    while let Some(first) = first_of_chain(&hops) {
        let mut chain = vec![hops.remove(first)];
        while let Some(next) = hops.iter().position(|hop| hop.writer.pid == chain[chain.len() - 1].reader.pid)
        {
            chain.push(hops.remove(next));
        }
        let waits_at = waits_at(&chain);
        all.push(Pipeline { hops: chain, waits_at });
    }
    all
}

/// Every pipe from somebody's standard output to somebody's standard input.
fn hops(context: &Context) -> Vec<Hop> {
    let mut ends: BTreeMap<String, (Vec<&StreamCounts>, Vec<&StreamCounts>)> = BTreeMap::new();
    for flow in &context.recording.counts {
        if context.kind(flow.file) == StreamKind::Pipe {
            let sides = ends.entry(context.target(flow.file)).or_default();
            if flow.direction == Direction::In { sides.1.push(flow) } else { sides.0.push(flow) }
        }
    }
    let hop = |(writers, readers): (Vec<&StreamCounts>, Vec<&StreamCounts>)| {
        let most = |flows: Vec<&StreamCounts>, fd: i32| -> Option<StreamCounts> {
            flows.into_iter().filter(|flow| flow.fd == fd).max_by_key(|flow| flow.bytes).cloned()
        };
        let (writer, reader) = (most(writers, 1)?, most(readers, 0)?);
        (writer.pid != reader.pid).then(|| make(context, &writer, &reader))
    };
    let mut all: Vec<Hop> = ends.into_values().filter_map(hop).collect();
    let order = |pid: u32| context.recording.processes.iter().position(|process| process.pid == pid);
    all.sort_by_key(|hop| order(hop.writer.pid));
    all
}

fn make(context: &Context, writer: &StreamCounts, reader: &StreamCounts) -> Hop {
    let pipe = context.file(writer.file).map_or("?", |file| &file.path).to_string();
    let pipe_bytes = [writer, reader].iter().find_map(|flow| context.file(flow.file)?.pipe_bytes);
    let (writer, reader) = (end(context, writer), end(context, reader));
    let holds_lines = writer.mode == Some(Mode::Full) || writer.waiting_bytes > 0;
    Hop { pipe, pipe_bytes, writer, reader, holds_lines }
}

fn end(context: &Context, flow: &StreamCounts) -> PipeEnd {
    let looks = context.looks(flow.pid).iter().filter(|look| {
        let image = context.image_at(flow.pid, look.at_s).map(|(index, _)| index as u32);
        image == Some(flow.image)
    });
    let streams = looks.flat_map(|look| look.buffers.iter().map(move |buffer| (look, buffer)));
    let streams: Vec<_> = streams.filter(|(_, buffer)| buffer.fd == flow.fd).collect();
    let last = streams.iter().rfind(|(_, buffer)| buffer.mode.is_some()).map(|(_, buffer)| *buffer);
    let output = flow.direction != Direction::In;
    let waiting = streams.iter().filter(|(look, _)| look.moment == SnapshotMoment::Sample || !output);
    let bytes =
        |buffer: &weir_model::trace::Buffer| if output { buffer.pending_bytes } else { buffer.unread_bytes };
    let by_calls = if output { pattern(flow) } else { None };
    PipeEnd {
        pid: flow.pid,
        comm: context.process(flow.pid).map_or("?", |process| process.comm()).into(),
        fd: flow.fd,
        calls: flow.calls,
        bytes: flow.bytes,
        mean_bytes: flow.mean_bytes(),
        mode: last.and_then(|buffer| buffer.mode).or(by_calls.map(|(mode, _)| mode)),
        buffer_bytes: last
            .map(|buffer| buffer.buffer_bytes)
            .filter(|&size| size > 0)
            .or(by_calls.and_then(|(_, size)| size)),
        waiting_bytes: waiting.map(|(_, buffer)| bytes(buffer)).max().unwrap_or(0),
    }
}

/// The mode that the calls show, and the buffer's size.
fn pattern(flow: &StreamCounts) -> Option<(Mode, Option<u64>)> {
    let calls = flow.calls.saturating_sub(flow.errors + flow.again + flow.zeros);
    let lines = flow.newline_ends;
    match () {
        () if calls < 3 => None,
        () if lines >= calls && flow.mean_bytes() < BLOCK => Some((Mode::Line, None)),
        () if flow.mean_bytes() >= BLOCK => Some((Mode::Full, Some(flow.asked_max).filter(|&size| size > 0))),
        () if lines * 2 < calls => Some((Mode::None, None)),
        () => Some((Mode::Mixed, None)),
    }
}

/// A hop whose writer reads from no other, or any where all are a ring.
fn first_of_chain(hops: &[Hop]) -> Option<usize> {
    let starts = |hop: &Hop| !hops.iter().any(|other| other.reader.pid == hop.writer.pid);
    hops.iter().position(starts).or(if hops.is_empty() { None } else { Some(0) })
}

fn waits_at(hops: &[Hop]) -> Option<usize> {
    let numbered = || hops.iter().enumerate().filter(|(_, hop)| hop.holds_lines);
    let seen = numbered().filter(|(_, hop)| hop.writer.waiting_bytes > 0);
    let most = seen.max_by_key(|(_, hop)| hop.writer.waiting_bytes);
    most.or_else(|| numbered().max_by_key(|(_, hop)| hop.writer.buffer_bytes)).map(|(index, _)| index)
}
