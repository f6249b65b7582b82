//! The streams of a recording: what readers call one, put together from the counters of its openings.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use weir_model::trace::{
    self, Histogram, Modes, ObservedMode, OpenFile, Prices, Recording, StreamCounts, Streams,
};
use weir_model::{Direction, StreamKind};

/// One descriptor of one program in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream<'a> {
    /// The name of the program.
    pub comm: &'a str,
    /// Where it leads, as the program named it first.
    pub path: &'a str,
    /// Other names by which the same file was opened in this run, by whomever.
    pub also: Vec<&'a str>,
    /// What is there.
    pub kind: StreamKind,
    /// The openings: indexes in [`Recording::files`].
    pub openings: Vec<u32>,
    /// Device and inode of the file, where they are known.
    pub inode: Option<(u64, u64)>,
    /// All its counters, of every opening of the file.
    pub flow: Cow<'a, StreamCounts>,
    /// How it is buffered, where that can be told.
    pub mode: Option<ObservedMode>,
    /// What its calls cost by this machine's prices, waiting for the device included; never more than the
    /// processor time that its process had. Seconds.
    pub cost_s: f64,
    /// What of it is waiting for the device.
    pub waits_s: f64,
    /// The same as a part of the run's time.
    pub share: f64,
}

/// All streams, by process, descriptor and direction, in the order in which they were first used.
pub fn streams<'a>(of: &Streams<'a>) -> Vec<Stream<'a>> {
    let recording = of.recording();
    let modes = recording.modes();
    let names = other_names(recording);
    let order: HashMap<u32, usize> =
        recording.processes.iter().enumerate().rev().map(|(at, process)| (process.pid, at)).collect();
    // First: these are larger.
    let mut ordered: Vec<_> = of.all().iter().collect();
    ordered.sort_by_key(|stream| (order.get(&stream.sum.pid).copied(), stream.sum.pid));
    let mut streams: Vec<Stream> =
        ordered.into_iter().map(|stream| Stream::of(recording, &modes, &names, stream)).collect();
    bound(recording, &mut streams);
    streams
}

/// Files that were opened by several names: these, by the opening with the first of them.
fn other_names(recording: &Recording) -> HashMap<u32, BTreeSet<&str>> {
    let mut names: HashMap<u32, BTreeSet<&str>> = HashMap::new();
    for file in &recording.files {
        let Some(first) = recording.first_name(file.id).filter(|first| first.id != file.id) else { continue };
        names.entry(first.id).or_default().extend([first.path.as_str(), &file.path]);
    }
    names
}

impl<'a> Stream<'a> {
    fn of(
        recording: &'a Recording,
        modes: &Modes,
        names: &HashMap<u32, BTreeSet<&'a str>>,
        stream: &trace::Stream<'a>,
    ) -> Self {
        let trace::Stream { comm, openings: flows, sum: flow } = stream;
        let file = recording.file(flow.file);
        let path = file.map_or("?", |file| &file.path);
        let all_names = recording.first_name(flow.file).and_then(|first| names.get(&first.id));
        let mut openings: Vec<u32> = flows.iter().map(|flow| flow.file).collect();
        openings.sort_unstable();
        openings.dedup();
        let kind = file.map_or(StreamKind::Other, |file| file.kind);
        let waits_s = flows.iter().map(|flow| waits_s(recording, flow, recording.file(flow.file))).sum();
        let transfer_s =
            recording.prices.transfer_s(kind, flow.direction == Direction::Out, flow.calls, flow.bytes);
        Self {
            comm,
            path,
            also: all_names.into_iter().flatten().copied().filter(|name| *name != path).collect(),
            kind,
            openings,
            inode: file.filter(|file| file.ino != 0).map(|file| (file.dev, file.ino)),
            mode: mode(modes, flows),
            flow: flow.clone(),
            cost_s: transfer_s + waits_s,
            waits_s,
            share: 0.0,
        }
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

/// Prices are of small runs: calls can have cost no more than the processor time that their process had, nor have
/// waited longer than it was without.
fn bound(recording: &Recording, streams: &mut [Stream]) {
    let watching_s = recording.overhead.cost_s.max(0.0);
    let run_s = (recording.elapsed_s - watching_s).max(recording.elapsed_s / 10.0);
    let mut by_process: HashMap<u32, Vec<&mut Stream>> = HashMap::new();
    streams.iter_mut().for_each(|stream| by_process.entry(stream.flow.pid).or_default().push(stream));
    for (pid, own) in &mut by_process {
        let Some(process) = recording.process(*pid) else { continue };
        let calls_s: f64 = own.iter().map(|stream| stream.cost_s - stream.waits_s).sum();
        let waits_s: f64 = own.iter().map(|stream| stream.waits_s).sum();
        let cpu_s = process.user_s + process.system_s;
        let idle_s = (process.ended_s.unwrap_or(recording.elapsed_s) - process.started_s - cpu_s).max(0.0);
        let number = own.iter().map(|stream| stream.flow.calls).sum();
        let calls = Prices::scale(calls_s, process.system_s - watching_s, number);
        let calls = if cpu_s > 0.0 && calls_s > 0.0 { calls.min(cpu_s / calls_s) } else { calls };
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
fn waits_s(recording: &Recording, flow: &StreamCounts, file: Option<&OpenFile>) -> f64 {
    if flow.direction != Direction::Out {
        return 0.0;
    }
    let in_calls = if file.is_some_and(OpenFile::waits_for_device) { flow.calls } else { 0 };
    (flow.syncs + in_calls) as f64 * recording.prices.sync_ns / 1e9
}

/// The mode of the opening with the most calls among those of which it can be told.
fn mode(modes: &Modes, flows: &[&StreamCounts]) -> Option<ObservedMode> {
    let known = flows.iter().filter_map(|flow| Some((flow.calls, modes.of(flow)?)));
    // Of several with as many, the first.
    known.reduce(|most, next| if next.0 > most.0 { next } else { most }).map(|(_, mode)| mode)
}
