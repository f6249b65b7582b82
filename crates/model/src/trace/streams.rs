//! What readers call a stream: the same descriptor of the same program, however often it opened the file anew.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt};

use super::{Engine, Flow, OpenFile, Recording};
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
pub struct Stream<'a> {
    /// Its flows, one for each opening, in order of time; there is always one.
    pub openings: Vec<&'a Flow>,
    /// All of them as one; where it leads is the first's.
    pub sum: Flow,
}

impl Recording {
    /// The streams, in the order in which they were first used; flows of which nothing was seen, not even a call that
    /// waits for the device, are of none. Whoever says how many streams there were counts these.
    pub fn streams(&self) -> Vec<Stream<'_>> {
        let mut flows: Vec<&Flow> =
            self.flows.iter().filter(|flow| flow.calls + flow.bytes + flow.syncs > 0).collect();
        flows.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
        let mut streams: Vec<Stream> = Vec::with_capacity(flows.len());
        let mut known: HashMap<Key, usize> = HashMap::with_capacity(flows.len());
        for flow in flows {
            match known.entry(self.key(flow)) {
                Entry::Occupied(at) => {
                    let stream = &mut streams[*at.get()];
                    stream.sum.add(flow);
                    stream.openings.push(flow);
                }
                Entry::Vacant(free) => {
                    free.insert(streams.len());
                    streams.push(Stream { openings: vec![flow], sum: flow.clone() });
                }
            }
        }
        // Of totals that are not whole themselves nothing is known exactly.
        if self.engine != Engine::Sample {
            self.settle(&mut streams);
        }
        streams
    }

    /// What several openings of one stream made together, and no other stream, is known exactly.
    fn settle(&self, streams: &mut [Stream]) {
        let socket = |flow: &Flow| self.file(flow.file).is_some_and(|file| file.kind == StreamKind::Socket);
        let counted = |sum: &Flow| sum.estimated && sum.calls > 0 && !socket(sum);
        let mut shared: HashMap<(u32, Direction), u32> = HashMap::new();
        for sum in streams.iter().map(|stream| &stream.sum).filter(|sum| counted(sum)) {
            *shared.entry((sum.pid, sum.direction)).or_default() += 1;
        }
        for sum in streams.iter_mut().map(|stream| &mut stream.sum).filter(|sum| counted(sum)) {
            sum.estimated = shared[&(sum.pid, sum.direction)] > 1;
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

    fn key(&self, flow: &Flow) -> Key<'_> {
        let file = self.first_name(flow.file);
        Key {
            pid: flow.pid,
            comm: self.comm(flow.pid, flow.image),
            fd: flow.fd,
            direction: flow.direction,
            kind: file.map_or(StreamKind::Other, |file| file.kind),
            path: file.map_or("?", |file| &file.path),
        }
    }
}
