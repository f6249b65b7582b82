//! What readers call a stream: the same descriptor of the same program, however often it opened the file anew.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use foldhash::{HashMap, HashMapExt};

use super::{BackendKind, OpenFile, Process, Recording, StreamCounts};
use crate::{Direction, StreamKind};

/// One descriptor of one program in one direction, and where it leads.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    pid: u32,
    comm: &'a str,
    fd: i32,
    direction: Direction,
    kind: StreamKind,
    path: &'a str,
}

/// A stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamTotals<'a> {
    /// The name of the program.
    pub comm: &'a str,
    /// Its flows, one for each opening, in order of time; there is always one.
    pub openings: Vec<&'a StreamCounts>,
    /// All of them as one; where it leads is the first's. Nearly always there is but one, and nothing to add up.
    pub sum: Cow<'a, StreamCounts>,
}

/// The streams of a recording for several who need them, also on several threads: put together once, when they are asked
/// for first.
#[derive(Debug)]
pub struct StreamTable<'a> {
    recording: &'a Recording,
    made: OnceLock<Vec<StreamTotals<'a>>>,
}

impl<'a> StreamTable<'a> {
    /// Those of this recording.
    pub fn of(recording: &'a Recording) -> Self {
        Self { recording, made: OnceLock::new() }
    }

    /// Whose they are.
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// As [`Recording::streams`] has them.
    pub fn all(&self) -> &[StreamTotals<'a>] {
        self.made.get_or_init(|| self.recording.streams())
    }
}

impl Recording {
    /// The streams, in the order in which they were first used; flows of which nothing was seen, not even a call that
    /// waits for the device, are of none. Whoever says how many streams there were counts these.
    pub fn streams(&self) -> Vec<StreamTotals<'_>> {
        let mut flows: Vec<&StreamCounts> =
            self.counts.iter().filter(|flow| flow.calls + flow.bytes + flow.syncs > 0).collect();
        flows.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
        let mut streams: Vec<StreamTotals> = Vec::with_capacity(flows.len());
        let mut known: HashMap<Key, usize> = HashMap::with_capacity(flows.len());
        let processes = self.processes_by_pid();
        for flow in flows {
            match known.entry(self.key(flow, &processes)) {
                Entry::Occupied(at) => {
                    let stream = &mut streams[*at.get()];
                    stream.sum.to_mut().add(flow);
                    stream.openings.push(flow);
                }
                Entry::Vacant(free) => {
                    let comm = free.key().comm;
                    free.insert(streams.len());
                    streams.push(StreamTotals { comm, openings: vec![flow], sum: Cow::Borrowed(flow) });
                }
            }
        }
        // Of totals that are not whole themselves nothing is known exactly.
        if self.engine != BackendKind::Sample {
            self.settle(&mut streams);
        }
        streams
    }

    /// What several openings of one stream made together, and no other stream, is known exactly.
    fn settle(&self, streams: &mut [StreamTotals]) {
        let socket =
            |flow: &StreamCounts| self.file(flow.file).is_some_and(|file| file.kind == StreamKind::Socket);
        let counted = |sum: &StreamCounts| sum.estimated && sum.calls > 0 && !socket(sum);
        let mut shared: HashMap<(u32, Direction), u32> = HashMap::new();
        for sum in streams.iter().map(|stream| &*stream.sum).filter(|sum| counted(sum)) {
            *shared.entry((sum.pid, sum.direction)).or_default() += 1;
        }
        for sum in streams.iter_mut().map(|stream| &mut stream.sum).filter(|sum| counted(sum)) {
            if shared[&(sum.pid, sum.direction)] == 1 {
                sum.to_mut().estimated = false;
            }
        }
    }

    /// The name of what a process ran, by the number of its image.
    pub fn comm(&self, pid: u32, image: u32) -> &str {
        self.image(pid, image).map_or("?", |image| &image.comm)
    }

    /// The opening by whose name a file is called: the first, where it was opened by several.
    pub fn first_name(&self, id: u32) -> Option<&OpenFile> {
        let file = self.file(id)?;
        Some(file.same_as.and_then(|first| self.file(first)).unwrap_or(file))
    }

    fn key<'a>(&'a self, flow: &StreamCounts, processes: &HashMap<u32, &'a Process>) -> Key<'a> {
        let file = self.first_name(flow.file);
        let image = processes.get(&flow.pid).and_then(|process| process.images.get(flow.image as usize));
        Key {
            pid: flow.pid,
            comm: image.map_or("?", |image| &image.comm),
            fd: flow.fd,
            direction: flow.direction,
            kind: file.map_or(StreamKind::Other, |file| file.kind),
            path: file.map_or("?", |file| &file.path),
        }
    }
}
