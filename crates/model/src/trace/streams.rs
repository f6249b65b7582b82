//! What readers call a stream: the same descriptor of the same program, however often it opened the file anew.

use std::collections::HashMap;

use super::{Flow, OpenFile, Recording};
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

impl Recording {
    /// The streams: each as its flows, one for each opening, in order of time. They come in the order in which they were
    /// first used; flows of which nothing was seen, not even a call that waits for the device, are none. Whoever says how many streams there were counts these.
    pub fn streams(&self) -> Vec<Vec<&Flow>> {
        let mut flows: Vec<&Flow> =
            self.flows.iter().filter(|flow| flow.calls + flow.bytes + flow.syncs > 0).collect();
        flows.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
        let mut streams: Vec<Vec<&Flow>> = Vec::new();
        let mut known: HashMap<Key, usize> = HashMap::new();
        for flow in flows {
            let at = *known.entry(self.key(flow)).or_insert_with(|| {
                streams.push(Vec::new());
                streams.len() - 1
            });
            streams[at].push(flow);
        }
        streams
    }

    /// The name of what a process ran, by the number of its image.
    pub fn comm(&self, pid: u32, image: u32) -> &str {
        let image = self.process(pid).and_then(|process| process.images.get(image as usize));
        image.map_or("?", |image| &image.comm)
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
