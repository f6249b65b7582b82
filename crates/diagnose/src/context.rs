//! A recording with the indexes that rules query: calls, streams and buffer snapshots by process and by open file, and the
//! relations between processes.

mod index;

use std::borrow::Cow;
use std::cell::OnceCell;

use foldhash::HashMap;
use weir_model::trace::{
    Buffer, Call, Image, Op, OpenFile, Prices, Process, Recording, SnapshotMoment, StreamCounts, StreamSum,
    StreamTable, TracingCost,
};
use weir_model::{Direction, StreamKind, Untrusted};

use crate::dialogue::Dialogues;
use crate::grouped::Grouped;
use crate::peers::PeerIndex;
use crate::run_advice::RunPlanner;

/// The number of generations after which a chain of parents counts as a broken recording.
pub(crate) const MAX_GENERATIONS: u32 = 64;

/// A recorded call with its time and process.
#[derive(Clone, Copy)]
pub(crate) struct TimedCall<'a> {
    pub at_s: f64,
    pub pid: u32,
    pub call: &'a Call,
}

/// The user-space buffers of one process at one time.
#[derive(Clone, Copy)]
pub(crate) struct BufferSnapshot<'a> {
    pub at_s: f64,
    /// When the memory had been read: later than `at_s` if the process was not stopped for it.
    pub read_until_s: f64,
    pub pid: u32,
    pub moment: SnapshotMoment,
    pub buffers: &'a [Buffer],
    /// The system call in which the process blocks; empty if there is none or it is unknown.
    pub waits_in: &'a str,
}

/// A sync call that succeeded.
pub(crate) struct SyncCall {
    pub at_s: f64,
    pub op: Op,
    /// None for sync(2), or if the open file is unknown.
    pub file: Option<u32>,
}

impl SyncCall {
    /// Returns whether the call syncs all files, or all of a file system.
    pub fn is_of_all_files(&self) -> bool {
        matches!(self.op, Op::Sync | Op::Syncfs)
    }
}

/// A signal that one process of the run sent to another with kill(2) or tgkill(2).
pub(crate) struct SentSignal {
    pub at_s: f64,
    pub sender: u32,
    /// None for a signal to a process group: the recording has no groups.
    pub receiver: Option<u32>,
    pub number: i32,
}

/// The recording and its indexes, as a rule's judge function gets them.
pub(crate) struct RuleContext<'a> {
    pub recording: &'a Recording,
    pub planner: &'a dyn RunPlanner,
    /// StreamTable with all openings of one path by one descriptor added up.
    merged: &'a StreamTable<'a>,
    processes: HashMap<u32, &'a Process>,
    calls_by_pid: Grouped<TimedCall<'a>>,
    calls_by_file: Grouped<TimedCall<'a>>,
    snapshots: Grouped<BufferSnapshot<'a>>,
    streams_by_pid: Grouped<&'a StreamCounts>,
    streams_by_file: Grouped<&'a StreamCounts>,
    peers: OnceCell<PeerIndex<'a>>,
    pub dialogues: Dialogues<'a>,
    /// Open files with O_APPEND, by device and inode.
    appending: HashMap<(u64, u64), Vec<u32>>,
    /// Calls that move bytes, by process, including those whose stream is unknown.
    call_counts: HashMap<u32, u64>,
    /// Bytes of the calls in gaps whose streams are unknown, by process, image and direction.
    unassigned_bytes: HashMap<(u32, u32, Direction), u64>,
    tracing: TracingCost,
    /// The factor by which prices are too high for a process; see [`Prices::scale`].
    price_scales: HashMap<u32, f64>,
    children: HashMap<u32, Vec<u32>>,
    /// Times of the fork events, by child.
    forked: HashMap<u32, f64>,
    /// The open files of a descriptor, each with the first time it was observed there, in order of time.
    fd_history: HashMap<(u32, i32), Vec<(f64, u32)>>,
    pub syncs: Vec<SyncCall>,
    /// The time of the last sync of each open file that is not a regular file. It comes from the stream's counts, because
    /// repeated calls are not all recorded as events.
    pub directory_syncs: Vec<(f64, u32)>,
    /// Absolute paths that were unlinked or renamed, with the time of the last such call.
    pub removed_names: HashMap<&'a Untrusted, f64>,
    pub signals_sent: Vec<SentSignal>,
    /// Sampling gaps by process, from and to; process 0 has those of all processes.
    gaps: HashMap<u32, Vec<(f64, f64)>>,
}

impl<'a> RuleContext<'a> {
    pub fn process(&self, pid: u32) -> Option<&'a Process> {
        self.processes.get(&pid).copied()
    }

    /// Returns the processes that a process has forked.
    pub fn children(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        self.children.get(&pid).into_iter().flatten().copied()
    }

    pub fn file(&self, id: u32) -> Option<&'a OpenFile> {
        self.recording.file(id)
    }

    pub fn kind(&self, id: u32) -> StreamKind {
        self.file(id).map_or(StreamKind::Other, |file| file.kind)
    }

    /// Returns the recorded calls of a process in order of time.
    pub fn calls(&self, pid: u32) -> &[TimedCall<'a>] {
        self.calls_by_pid.get(pid)
    }

    /// Returns the recorded calls of all processes on an open file in order of time.
    pub fn calls_on(&self, file: u32) -> &[TimedCall<'a>] {
        self.calls_by_file.get(file)
    }

    /// Returns the recorded calls that decide the order of bytes in a file, in order of time: those on the open file and, if
    /// it appends, those on every other appending open file of the same inode.
    pub fn calls_in_write_order(&self, file: u32) -> Cow<'_, [TimedCall<'a>]> {
        let inode = self.file(file).map(|file| (file.dev, file.ino));
        let openings = inode.and_then(|inode| self.appending.get(&inode));
        match openings.filter(|openings| openings.len() > 1 && openings.contains(&file)) {
            None => Cow::Borrowed(self.calls_on(file)),
            Some(openings) => {
                let mut calls: Vec<TimedCall> =
                    openings.iter().flat_map(|&opening| self.calls_on(opening)).copied().collect();
                calls.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
                Cow::Owned(calls)
            }
        }
    }

    /// Returns the recorded calls of a process between two times, both excluded.
    pub fn calls_between(&self, pid: u32, from_s: f64, to_s: f64) -> &[TimedCall<'a>] {
        let calls = self.calls(pid);
        let first = calls.partition_point(|timed| timed.at_s <= from_s);
        let end = calls.partition_point(|timed| timed.at_s < to_s).max(first);
        &calls[first..end]
    }

    /// Returns the buffer snapshots of a process in order of time.
    pub fn snapshots(&self, pid: u32) -> &[BufferSnapshot<'a>] {
        self.snapshots.get(pid)
    }

    /// Returns all buffer snapshots, ordered by process and time.
    pub fn all_snapshots(&self) -> impl Iterator<Item = BufferSnapshot<'a>> + '_ {
        self.snapshots.all().iter().copied()
    }

    /// Returns the number of calls of a process that move bytes.
    pub fn call_count(&self, pid: u32) -> u64 {
        self.call_counts.get(&pid).copied().unwrap_or(0)
    }

    /// Returns the bytes of a stream, and those that its process moved in this direction in gaps and that no file position assigns
    /// to a stream.
    pub fn with_unassigned(&self, stream: &StreamCounts) -> u64 {
        let unassigned = self.unassigned_bytes.get(&(stream.pid, stream.image, stream.direction));
        stream.bytes.saturating_add(unassigned.copied().unwrap_or(0))
    }

    pub fn price_scale(&self, pid: u32) -> f64 {
        self.price_scales.get(&pid).copied().unwrap_or(1.0)
    }

    /// Returns the price scale of a stream whose calls were priced separately at `priced_s`. It is 1 unless the stream makes
    /// nearly all calls of its process.
    pub fn stream_price_scale(&self, stream: &StreamCounts, priced_s: f64) -> f64 {
        let mostly = stream.calls * 10 >= self.call_count(stream.pid) * 9;
        if mostly { Prices::scale(priced_s, self.system_s(stream.pid), stream.calls) } else { 1.0 }
    }

    /// Returns the CPU seconds that the kernel used for a process, without the cost of tracing its calls.
    pub fn system_s(&self, pid: u32) -> f64 {
        self.process(pid).map_or(0.0, |process| self.tracing.system_s(process))
    }

    pub fn streams_of(&self, pid: u32) -> &[&'a StreamCounts] {
        self.streams_by_pid.get(pid)
    }

    pub fn peers(&self) -> &PeerIndex<'a> {
        self.peers.get_or_init(|| PeerIndex::of(self))
    }

    pub fn streams_on(&self, file: u32) -> &[&'a StreamCounts] {
        self.streams_by_file.get(file)
    }

    /// Returns the known streams of all processes in one direction.
    pub fn streams(&self, direction: Direction) -> impl Iterator<Item = &'a StreamCounts> + use<'a> {
        let streams = self.recording.counts.iter();
        streams.filter(move |stream| stream.direction == direction && stream.is_known())
    }

    /// Returns the merged streams in one direction that have an opening for which `matches` is true. Their figures are those
    /// of the report's stream table.
    pub fn merged_streams(
        &self,
        direction: Direction,
        matches: impl Fn(&StreamCounts) -> bool,
    ) -> impl Iterator<Item = &StreamCounts> {
        let streams = self.merged.all().iter().filter(move |stream| stream.sum.direction == direction);
        let chosen = streams.filter(move |stream| stream.openings.iter().any(|opening| matches(opening)));
        chosen.map(|stream| &*stream.sum)
    }

    /// Returns the merged streams of both directions, also the entries for calls whose stream is unknown.
    pub fn merged_streams_of_all(&self) -> impl Iterator<Item = &StreamCounts> {
        self.merged.all().iter().map(|stream| &*stream.sum)
    }

    /// Returns the merged streams in one direction with their openings.
    pub fn merged_openings(&self, direction: Direction) -> impl Iterator<Item = &StreamSum<'a>> {
        let known = self.merged.all().iter().filter(|stream| stream.sum.is_known());
        known.filter(move |stream| stream.sum.direction == direction)
    }

    /// Returns the number of merged streams, without the entry for calls whose stream is unknown.
    pub fn known_stream_count(&self) -> usize {
        self.merged.all().iter().filter(|stream| stream.sum.is_known()).count()
    }

    /// Returns whether calls were counted whose stream is unknown.
    pub fn has_unattributed_calls(&self) -> bool {
        self.merged.all().iter().any(|stream| !stream.sum.is_known() && stream.sum.calls > 0)
    }

    /// Returns the image that a process ran at a time, with its index.
    pub fn image_at(&self, pid: u32, at_s: f64) -> Option<(usize, &'a Image)> {
        self.process(pid)?.image_at(at_s)
    }

    /// Returns the open file of a descriptor at a time, as the streams, calls and snapshots of the process show it. If they do not,
    /// returns what those of its nearest ancestor show at the time of the fork.
    pub fn file_at(&self, pid: u32, fd: i32, at_s: f64) -> Option<u32> {
        let (mut pid, mut at_s) = (pid, at_s);
        for _ in 0..MAX_GENERATIONS {
            if let Some(file) = self.own_file_at(pid, fd, at_s) {
                return Some(file);
            }
            (pid, at_s) = (self.process(pid)?.parent?, self.forked_at(pid));
        }
        None
    }

    fn own_file_at(&self, pid: u32, fd: i32, at_s: f64) -> Option<u32> {
        let files = self.fd_history.get(&(pid, fd))?;
        let after = files.partition_point(|(since, _)| *since <= at_s);
        files.get(after.saturating_sub(1)).map(|(_, file)| *file)
    }

    /// Returns whether a sampling gap of a process overlaps a span of time: calls may be missing from the recording.
    pub fn has_gap(&self, pid: u32, from_s: f64, to_s: f64) -> bool {
        let gaps = [pid, 0].into_iter().filter_map(|pid| self.gaps.get(&pid)).flatten();
        any_overlaps(gaps, from_s, to_s)
    }

    /// Returns how many seconds of a span of time are in sampling gaps of a process.
    pub fn gaps_s(&self, pid: u32, from_s: f64, to_s: f64) -> f64 {
        let gaps = [pid, 0].into_iter().filter_map(|pid| self.gaps.get(&pid)).flatten();
        let mut gaps: Vec<(f64, f64)> = gaps.copied().collect();
        gaps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sum_s, mut until_s) = (0.0, from_s);
        for (gap_from_s, gap_to_s) in gaps {
            let end_s = gap_to_s.min(to_s);
            sum_s += (end_s - gap_from_s.max(until_s)).max(0.0);
            until_s = until_s.max(end_s);
        }
        sum_s
    }

    /// Returns whether a sampling gap of any process overlaps a span of time.
    pub fn has_gap_of_any(&self, from_s: f64, to_s: f64) -> bool {
        any_overlaps(self.gaps.values().flatten(), from_s, to_s)
    }

    /// Returns the time of a process's fork, or of its start if the fork was not recorded.
    pub fn forked_at(&self, pid: u32) -> f64 {
        let started = || self.process(pid).map_or(0.0, |process| process.started_s);
        self.forked.get(&pid).copied().unwrap_or_else(started)
    }

    /// Returns the time of a process's end, or the end of the recording.
    pub fn ended_at(&self, pid: u32) -> f64 {
        self.process(pid).and_then(|process| process.ended_s).unwrap_or(self.recording.elapsed_s)
    }

    /// Returns whether a process is a child, grandchild or further descendant of another.
    pub fn is_descendant(&self, pid: u32, ancestor: u32) -> bool {
        let mut current = pid;
        for _ in 0..MAX_GENERATIONS {
            match self.process(current).and_then(|process| process.parent) {
                Some(parent) if parent == ancestor => return true,
                Some(parent) => current = parent,
                None => return false,
            }
        }
        false
    }

    /// Returns a key that is equal for open files of the same inode or pipe.
    pub fn target_key(&self, file: u32) -> String {
        match self.file(file) {
            // A FIFO may have several paths, as a file may.
            Some(file) if file.ino != 0 && (file.kind == StreamKind::File || file.is_fifo()) => {
                format!("{}:{}", file.dev, file.ino)
            }
            Some(file) if file.path.is_empty() => format!("#{}", file.id),
            Some(file) => file.path.exact().to_string(),
            None => format!("#{file}"),
        }
    }

    /// Returns the sync calls of any process that sync a file, by whichever of its open files.
    pub fn syncs_of(&self, file: u32) -> impl Iterator<Item = &SyncCall> {
        let key = self.target_key(file);
        self.syncs.iter().filter(move |sync| {
            let is_same = |other: u32| other == file || self.target_key(other) == key;
            sync.is_of_all_files() || sync.file.is_some_and(is_same)
        })
    }

    /// Returns whether a pipe has recorded readers and all of them had ended at a time. The readers of a socket are unknown: they
    /// have the other end, which is another inode.
    pub fn readers_exited(&self, file: u32, at_s: f64) -> bool {
        if self.kind(file) != StreamKind::Pipe {
            return false;
        }
        let key = self.target_key(file);
        let streams = self.streams(Direction::In);
        let mut readers = streams.filter(|stream| self.target_key(stream.file) == key).peekable();
        readers.peek().is_some() && readers.all(|stream| self.ended_at(stream.pid) <= at_s)
    }

    /// Returns whether a file is on a file system in memory: a power cut removes it whatever the program syncs.
    pub fn is_in_memory(&self, file: u32) -> bool {
        self.file(file).is_some_and(|file| self.recording.memory_devices.contains(&file.dev))
    }

    pub fn is_null(&self, file: u32) -> bool {
        self.file(file).is_some_and(|file| file.path == "/dev/null")
    }
}

/// Returns whether the shorter text is not empty and is a prefix of the other.
pub(crate) fn same_prefix(one: &[u8], other: &[u8]) -> bool {
    let common = one.len().min(other.len());
    common > 0 && one[..common] == other[..common]
}

/// Returns whether one of the spans (from, to) overlaps another span.
fn any_overlaps<'a>(mut spans: impl Iterator<Item = &'a (f64, f64)>, from_s: f64, to_s: f64) -> bool {
    spans.any(|&(since_s, until_s)| since_s < to_s && until_s > from_s)
}
