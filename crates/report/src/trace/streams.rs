//! The streams of a recording: what readers call one, put together from the counters of its openings.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use weir_model::trace::{Flow, Histogram, Modes, OpenFile, Prices, Process, Recording, SeenMode};
use weir_model::{Direction, StreamKind};

/// One descriptor of one program in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream<'a> {
    /// The name of the program.
    pub comm: &'a str,
    /// Where it leads.
    pub path: &'a str,
    /// What is there.
    pub kind: StreamKind,
    /// All its counters, of every opening of the path.
    pub flow: Flow,
    /// How it is buffered, where that can be told.
    pub mode: Option<SeenMode>,
    /// What its calls cost by this machine's prices, waiting for the device included; never more than the
    /// processor time that its process had. Seconds.
    pub cost_s: f64,
    /// What of it is waiting for the device.
    pub waits_s: f64,
    /// The same as a part of the run's time.
    pub share: f64,
}

/// What openings of one stream have in common.
type Key<'a> = (u32, i32, Direction, StreamKind, &'a str, &'a str);

/// All streams, by process, descriptor and direction, in the order in which they were first used.
pub fn streams(recording: &Recording) -> Vec<Stream<'_>> {
    let mut streams: Vec<Stream> = Vec::new();
    let mut known: HashMap<Key, usize> = HashMap::new();
    let mut flows: Vec<&Flow> = recording.flows.iter().filter(|flow| flow.calls > 0).collect();
    flows.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
    let (modes, processes) = (recording.modes(), recording.processes_by_pid());
    for flow in flows {
        let stream = Stream::of(recording, processes.get(&flow.pid).copied(), &modes, flow);
        match known.entry(stream.key()) {
            Entry::Occupied(known) => streams[*known.get()].add(stream),
            Entry::Vacant(new) => {
                new.insert(streams.len());
                streams.push(stream);
            }
        }
    }
    // The first of those that had the number.
    let order: HashMap<u32, usize> =
        recording.processes.iter().enumerate().rev().map(|(at, process)| (process.pid, at)).collect();
    streams.sort_by_key(|stream| (order.get(&stream.flow.pid), stream.flow.pid));
    bound(recording, &mut streams);
    streams
}

impl<'a> Stream<'a> {
    fn of(recording: &'a Recording, process: Option<&'a Process>, modes: &Modes, flow: &Flow) -> Self {
        let image = process.and_then(|process| process.images.get(flow.image as usize));
        let file = recording.file(flow.file);
        let kind = file.map_or(StreamKind::Other, |file| file.kind);
        let writes = flow.direction == Direction::Out;
        let transfer_s = recording.prices.transfer_s(kind, writes, flow.calls, flow.bytes);
        let waits_s = waits_s(recording, flow, file);
        Self {
            comm: image.map_or("?", |image| &image.comm),
            path: file.map_or("?", |file| &file.path),
            kind,
            flow: flow.clone(),
            mode: modes.of(flow),
            cost_s: transfer_s + waits_s,
            waits_s,
            share: 0.0,
        }
    }

    fn key(&self) -> Key<'a> {
        let Flow { pid, fd, direction, .. } = self.flow;
        (pid, fd, direction, self.kind, self.path, self.comm)
    }

    fn add(&mut self, other: Self) {
        // What most of the calls say counts.
        if other.mode.is_some() && (self.mode.is_none() || other.flow.calls > self.flow.calls) {
            self.mode = other.mode;
        }
        self.cost_s += other.cost_s;
        self.waits_s += other.waits_s;
        add_flow(&mut self.flow, &other.flow);
    }

    /// Does the program write?
    pub fn writes(&self) -> bool {
        self.flow.direction == Direction::Out
    }

    /// What a call in the middle of all, by size, moved: the mean where that is in the same power of two, else
    /// the least of that power.
    pub fn typical_bytes(&self) -> Option<u64> {
        let sizes = &self.flow.sizes;
        let zeros = sizes.0.first().copied().unwrap_or(0);
        let half = (sizes.total() - zeros).div_ceil(2);
        let mut below = 0;
        let slot = sizes.0.iter().skip(1).position(|count| {
            below += count;
            below >= half && half > 0
        })? + 1;
        let mean = self.flow.mean_bytes().round() as u64;
        Some(if Histogram::slot(mean) == slot { mean } else { Histogram::floor(slot) })
    }
}

/// Times of a process, or of all that had its number, in seconds.
#[derive(Default)]
struct Times {
    lived: f64,
    processor: f64,
    system: f64,
}

fn times(recording: &Recording) -> HashMap<u32, Times> {
    let mut all: HashMap<u32, Times> = HashMap::new();
    for process in &recording.processes {
        let times = all.entry(process.pid).or_default();
        times.lived += process.ended_s.unwrap_or(recording.elapsed_s) - process.started_s;
        times.processor += process.user_s + process.system_s;
        times.system += process.system_s;
    }
    all
}

/// Prices are of small runs: calls can have cost no more than the processor time that their process had, nor have
/// waited longer than it was without. The streams of a process lie together.
fn bound(recording: &Recording, streams: &mut [Stream]) {
    let watching_s = recording.overhead.cost_s.max(0.0);
    let run_s = (recording.elapsed_s - watching_s).max(recording.elapsed_s / 10.0);
    let times = times(recording);
    for own in streams.chunk_by_mut(|a, b| a.flow.pid == b.flow.pid) {
        let Some(times) = times.get(&own[0].flow.pid) else { continue };
        let calls_s: f64 = own.iter().map(|stream| stream.cost_s - stream.waits_s).sum();
        let waits_s: f64 = own.iter().map(|stream| stream.waits_s).sum();
        let idle_s = (times.lived - times.processor).max(0.0);
        let number = own.iter().map(|stream| stream.flow.calls).sum();
        let calls = Prices::scale(calls_s, times.system - watching_s, number);
        let most = times.processor;
        let calls = if most > 0.0 { calls.min(most / calls_s.max(most)) } else { calls };
        let waits = idle_s / waits_s.max(idle_s).max(f64::MIN_POSITIVE);
        for stream in own {
            stream.cost_s = (stream.cost_s - stream.waits_s) * calls + stream.waits_s * waits;
            stream.waits_s *= waits;
        }
    }
    for stream in streams {
        stream.share = if run_s > 0.0 { (stream.cost_s / run_s).clamp(0.0, 1.0) } else { 0.0 };
    }
}

/// What waiting for the device takes: by sync calls, or in every write of a file opened so.
fn waits_s(recording: &Recording, flow: &Flow, file: Option<&OpenFile>) -> f64 {
    if flow.direction != Direction::Out {
        return 0.0;
    }
    let in_calls = if file.is_some_and(OpenFile::waits_for_device) { flow.calls } else { 0 };
    (flow.syncs + in_calls) as f64 * recording.prices.sync_ns / 1e9
}

fn add_flow(to: &mut Flow, more: &Flow) {
    let pairs = [
        (&mut to.calls, more.calls),
        (&mut to.bytes, more.bytes),
        (&mut to.errors, more.errors),
        (&mut to.again, more.again),
        (&mut to.zeros, more.zeros),
        (&mut to.short, more.short),
        (&mut to.newline_ends, more.newline_ends),
        (&mut to.jumps, more.jumps),
        (&mut to.again_bytes, more.again_bytes),
        (&mut to.unaligned, more.unaligned),
        (&mut to.in_kernel, more.in_kernel),
        (&mut to.syncs, more.syncs),
        (&mut to.seeks, more.seeks),
    ];
    pairs.into_iter().for_each(|(sum, part)| *sum += part);
    to.sizes.merge(&more.sizes);
    to.asked.merge(&more.asked);
    to.asked_max = to.asked_max.max(more.asked_max);
    to.first_s = to.first_s.min(more.first_s);
    to.last_s = to.last_s.max(more.last_s);
    to.exact &= more.exact;
}
