//! Streams of a recording. A stream is one descriptor of one program in one direction, also if the program opens the
//! file several times.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use foldhash::{HashMap, HashMapExt};

use super::{BackendKind, OpenFile, Process, Recording, StreamCounts, UNKNOWN};
use crate::{Direction, StreamKind, Untrusted};

/// Identity of a stream.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    pid: u32,
    comm: &'a Untrusted,
    fd: i32,
    direction: Direction,
    kind: StreamKind,
    path: &'a Untrusted,
}

/// A stream and the sum of its counts.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamSum<'a> {
    /// Name of the program.
    pub comm: &'a Untrusted,
    /// Counts of each opening by time, at least one.
    pub openings: Vec<&'a StreamCounts>,
    /// Sum of the counts; the file is that of the first opening. Borrowed for a single opening, the most frequent case.
    pub sum: Cow<'a, StreamCounts>,
}

/// The streams of a recording, built on first use and then shared, also between threads.
#[derive(Debug)]
pub struct StreamTable<'a> {
    recording: &'a Recording,
    streams: OnceLock<Vec<StreamSum<'a>>>,
}

impl<'a> StreamTable<'a> {
    /// Makes the table of a recording without building it.
    pub fn of(recording: &'a Recording) -> Self {
        Self { recording, streams: OnceLock::new() }
    }

    /// Returns the recording of the table.
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Returns the result of [`Recording::streams`].
    pub fn all(&self) -> &[StreamSum<'a>] {
        self.streams.get_or_init(|| self.recording.streams())
    }
}

impl Recording {
    /// Returns the streams by the time of their first use, without streams that have no calls, bytes and syncs, unless a call on
    /// them blocks. Every report counts the streams in this list.
    pub fn streams(&self) -> Vec<StreamSum<'_>> {
        let is_used = |counts: &&StreamCounts| {
            counts.calls + counts.bytes + counts.syncs > 0 || counts.is_blocked_throughout()
        };
        let mut all: Vec<&StreamCounts> = self.counts.iter().filter(is_used).collect();
        all.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
        let mut streams: Vec<StreamSum> = Vec::with_capacity(all.len());
        let mut known: HashMap<Key, usize> = HashMap::with_capacity(all.len());
        let processes = self.processes_by_pid();
        for counts in all {
            match known.entry(self.key(counts, &processes)) {
                Entry::Occupied(at) => {
                    let stream = &mut streams[*at.get()];
                    stream.sum.to_mut().add(counts);
                    stream.openings.push(counts);
                }
                Entry::Vacant(free) => {
                    let comm = free.key().comm;
                    free.insert(streams.len());
                    streams.push(StreamSum { comm, openings: vec![counts], sum: Cow::Borrowed(counts) });
                }
            }
        }
        // The totals of the sampling backend are incomplete, so no share of them is exact.
        if self.backend != BackendKind::Sample {
            self.mark_unshared_sums(&mut streams);
        }
        streams
    }

    /// Marks the sum of a stream as exact if all estimated openings of a process in one direction belong to that stream. The
    /// unknown stream and the streams beside it stay estimated.
    fn mark_unshared_sums(&self, streams: &mut [StreamSum]) {
        let is_socket = |counts: &StreamCounts| {
            self.file(counts.file).is_some_and(|file| file.kind == StreamKind::Socket)
        };
        let is_estimated = |sum: &StreamCounts| sum.estimated && sum.calls > 0 && !is_socket(sum);
        let mut shared: HashMap<(u32, Direction), u32> = HashMap::new();
        for sum in streams.iter().map(|stream| &*stream.sum).filter(|sum| is_estimated(sum)) {
            *shared.entry((sum.pid, sum.direction)).or_default() += 1;
        }
        for sum in streams.iter_mut().map(|stream| &mut stream.sum).filter(|sum| is_estimated(sum)) {
            if shared[&(sum.pid, sum.direction)] == 1 && sum.is_known() && !sum.at_least {
                sum.to_mut().estimated = false;
            }
        }
    }

    /// Returns the opening that gives a file its path in reports: the first, if it was opened by several paths.
    pub fn first_name(&self, id: u32) -> Option<&OpenFile> {
        let file = self.file(id)?;
        Some(file.same_as.and_then(|first| self.file(first)).unwrap_or(file))
    }

    fn key<'a>(&'a self, counts: &StreamCounts, processes: &HashMap<u32, &'a Process>) -> Key<'a> {
        let file = self.first_name(counts.file);
        let image = processes.get(&counts.pid).and_then(|process| process.images.get(counts.image as usize));
        Key {
            pid: counts.pid,
            comm: image.map_or(&UNKNOWN, |image| &image.comm),
            fd: counts.fd,
            direction: counts.direction,
            kind: file.map_or(StreamKind::Other, |file| file.kind),
            path: file.map_or(&UNKNOWN, |file| &file.path),
        }
    }
}
