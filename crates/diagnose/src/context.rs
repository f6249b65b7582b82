//! A recording with what every rule asks of it: events by process and by open file, who descends from whom.

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt};

use weir_model::trace::{
    Buffer, Call, Event, EventKind, Image, Op, OpenFile, Prices, Process, Recording, SnapshotMoment,
    StreamCounts, StreamTable,
};
use weir_model::{Direction, StreamKind};

use crate::cost::priced_s;
use crate::flags::O_APPEND;
use crate::groups::Groups;

/// A call with when and by whom.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub at_s: f64,
    pub pid: u32,
    pub call: &'a Call,
}

/// What a walker saw in one process at a time.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub at_s: f64,
    pub pid: u32,
    pub moment: SnapshotMoment,
    pub buffers: &'a [Buffer],
    pub waits_in: &'a str,
}

/// Events by process and by open file, in order of time, before they are grouped.
#[derive(Default)]
struct Lists<'a> {
    calls: Vec<(u32, Seen<'a>)>,
    calls_on: Vec<(u32, Seen<'a>)>,
    looks: Vec<(u32, Look<'a>)>,
}

/// Indexes of a recording, made once.
pub(crate) struct Context<'a> {
    pub recording: &'a Recording,
    /// Flows by stream: with every opening of the same file by the same descriptor.
    streams: &'a StreamTable<'a>,
    processes: HashMap<u32, &'a Process>,
    calls_by_pid: Groups<Seen<'a>>,
    calls_by_file: Groups<Seen<'a>>,
    looks: Groups<Look<'a>>,
    flows_by_pid: Groups<&'a StreamCounts>,
    flows_by_file: Groups<&'a StreamCounts>,
    /// Openings that append, by file.
    appending: HashMap<(u64, u64), Vec<u32>>,
    /// Of each process, also those of which it is not known through which stream they went.
    calls_of_pid: HashMap<u32, u64>,
    /// By how much the prices are too high for a process; see [`Prices::scale`].
    price_scales: HashMap<u32, f64>,
    /// When each process was forked, by the fork's own event.
    forked: HashMap<u32, f64>,
    /// Which open file was seen behind a descriptor of a process, and since when, in order of time.
    behind: HashMap<(u32, i32), Vec<(f64, u32)>>,
    /// Sync calls that succeeded: when, which, of which open file.
    pub syncs: Vec<(f64, Op, Option<u32>)>,
    /// When open files that are no regular ones were synced last, by the counters: where a call is made over and over it
    /// is not told each time.
    pub directory_syncs: Vec<(f64, u32)>,
    /// Names from the root that were unlinked or renamed, and when that was last.
    pub given_up: HashMap<&'a str, f64>,
    /// Signals that one process sent to another: when, who, to whom.
    pub kills: Vec<(f64, u32, u32)>,
    /// When no calls were seen: of a process, and (0) of anybody.
    unwatched: HashMap<u32, Vec<(f64, f64)>>,
}

impl<'a> Context<'a> {
    pub fn new(streams: &'a StreamTable<'a>) -> Self {
        let recording = streams.recording();
        let known = || recording.counts.iter().filter(|flow| flow.is_known());
        let mut context = Self {
            recording,
            streams,
            processes: recording.processes.iter().map(|process| (process.pid, process)).collect(),
            calls_by_pid: Groups::default(),
            calls_by_file: Groups::default(),
            looks: Groups::default(),
            flows_by_pid: Groups::of(known().map(|flow| (flow.pid, flow)).collect()),
            flows_by_file: Groups::of(known().map(|flow| (flow.file, flow)).collect()),
            appending: HashMap::new(),
            calls_of_pid: HashMap::new(),
            price_scales: HashMap::new(),
            forked: HashMap::new(),
            behind: HashMap::new(),
            syncs: Vec::new(),
            directory_syncs: Vec::new(),
            unwatched: HashMap::new(),
            kills: Vec::new(),
            given_up: HashMap::new(),
        };
        let mut lists = Lists::default();
        lists.calls.reserve(recording.events.len());
        lists.calls_on.reserve(recording.events.len());
        for event in &recording.events {
            context.index_event(event, &mut lists);
        }
        context.calls_by_pid = Groups::of(lists.calls);
        context.calls_by_file = Groups::of(lists.calls_on);
        context.looks = Groups::of(lists.looks);
        let appends =
            |file: &&OpenFile| file.kind == StreamKind::File && file.ino != 0 && file.flags & O_APPEND != 0;
        for file in recording.files.iter().filter(appends) {
            context.appending.entry((file.dev, file.ino)).or_default().push(file.id);
        }
        let directories = recording
            .counts
            .iter()
            .filter(|flow| flow.syncs > 0 && context.kind(flow.file) != StreamKind::File);
        context.directory_syncs = directories.map(|flow| (flow.last_s, flow.file)).collect();
        let mut priced: HashMap<u32, f64> = HashMap::new();
        for flow in &recording.counts {
            *context.calls_of_pid.entry(flow.pid).or_default() += flow.calls;
            *priced.entry(flow.pid).or_default() += priced_s(recording, flow);
        }
        for flow in known() {
            context.behind.entry((flow.pid, flow.fd)).or_default().push((flow.first_s, flow.file));
        }
        for (&pid, &priced_s) in &priced {
            let calls = context.calls_by(pid);
            let watching = recording.overhead.cost_s.max(0.0);
            let system_s = context.process(pid).map_or(0.0, |process| process.system_s - watching);
            context.price_scales.insert(pid, Prices::scale(priced_s, system_s, calls));
        }
        for files in context.behind.values_mut() {
            files.sort_by(|a, b| a.0.total_cmp(&b.0));
            files.dedup_by_key(|(_, file)| *file);
        }
        context
    }

    fn index_event(&mut self, event: &'a Event, lists: &mut Lists<'a>) {
        let (at_s, pid) = (event.at_s, event.pid);
        match &event.kind {
            EventKind::Call(call) => {
                let seen = Seen { at_s, pid, call };
                lists.calls.push((pid, seen));
                if call.op.syncs() && call.result == 0 {
                    self.syncs.push((at_s, call.op, call.file));
                }
                let name = match (&call.rename, call.op) {
                    (Some(rename), _) => Some(&rename.from),
                    (None, Op::Unlink | Op::Unlinkat) => call.paths.first(),
                    _ => None,
                };
                if let Some(name) = name.filter(|_| call.result == 0) {
                    self.given_up.insert(name, at_s);
                }
                if matches!(call.op, Op::Kill | Op::Tgkill) && call.result == 0 {
                    self.kills.push((at_s, pid, call.args[0] as u32));
                }
                let Some(file) = call.file else { return };
                lists.calls_on.push((file, seen));
                // What opens a file has its descriptor as the result.
                let fd = if call.fd >= 0 { call.fd } else { call.result as i32 };
                if fd >= 0 {
                    self.behind.entry((pid, fd)).or_default().push((at_s, file));
                }
            }
            EventKind::Buffers { moment, buffers, waits_in_name, files, .. } => {
                let look = Look { at_s, pid, moment: *moment, buffers, waits_in: waits_in_name };
                lists.looks.push((pid, look));
                for &(fd, file) in files {
                    self.behind.entry((pid, fd)).or_default().push((at_s, file));
                }
            }
            EventKind::Fork { child } => {
                self.forked.insert(*child, at_s);
            }
            EventKind::Unwatched { until_s } if *until_s > at_s => {
                self.unwatched.entry(pid).or_default().push((at_s, *until_s));
            }
            _ => {}
        }
    }

    pub fn process(&self, pid: u32) -> Option<&'a Process> {
        self.processes.get(&pid).copied()
    }

    pub fn file(&self, id: u32) -> Option<&'a OpenFile> {
        self.recording.file(id)
    }

    pub fn kind(&self, id: u32) -> StreamKind {
        self.file(id).map_or(StreamKind::Other, |file| file.kind)
    }

    /// The calls of a process that were looked at, in order of time.
    pub fn calls(&self, pid: u32) -> &[Seen<'a>] {
        self.calls_by_pid.get(pid)
    }

    /// The calls on an open file that were looked at, whoever made them.
    pub fn calls_on(&self, file: u32) -> &[Seen<'a>] {
        self.calls_by_file.get(file)
    }

    /// The calls by which bytes come to stand one behind the other, whoever made them, in order of time: those on an open
    /// file, and where it appends those on the other openings of the same file that append, by whatever name.
    pub fn calls_in_turn(&self, file: u32) -> Cow<'_, [Seen<'a>]> {
        let inode = self.file(file).map(|file| (file.dev, file.ino));
        let openings = inode.and_then(|inode| self.appending.get(&inode));
        match openings.filter(|openings| openings.len() > 1 && openings.contains(&file)) {
            None => Cow::Borrowed(self.calls_on(file)),
            Some(openings) => {
                let mut calls: Vec<Seen> =
                    openings.iter().flat_map(|&one| self.calls_on(one)).copied().collect();
                calls.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
                Cow::Owned(calls)
            }
        }
    }

    /// What walkers saw in a process, in order of time.
    pub fn looks(&self, pid: u32) -> &[Look<'a>] {
        self.looks.get(pid)
    }

    /// Every look at every process, in order of process and time.
    pub fn all_looks(&self) -> impl Iterator<Item = Look<'a>> + '_ {
        self.looks.all().iter().copied()
    }

    pub fn price_scale(&self, pid: u32) -> f64 {
        self.price_scales.get(&pid).copied().unwrap_or(1.0)
    }

    /// All calls of a process that move bytes.
    pub fn calls_by(&self, pid: u32) -> u64 {
        self.calls_of_pid.get(&pid).copied().unwrap_or(0)
    }

    /// The same for a flow that has prices of its own, and is nearly all that its process does.
    pub fn scale_of(&self, flow: &StreamCounts, priced_s: f64) -> f64 {
        let all = self.calls_by(flow.pid);
        let watching = self.recording.overhead.cost_s.max(0.0);
        let system_s = self.process(flow.pid).map_or(0.0, |process| process.system_s - watching);
        let mostly = flow.calls * 10 >= all * 9;
        if mostly { Prices::scale(priced_s, system_s, flow.calls) } else { 1.0 }
    }

    /// The streams of a process.
    pub fn flows(&self, pid: u32) -> &[&'a StreamCounts] {
        self.flows_by_pid.get(pid)
    }

    pub fn flows_on(&self, file: u32) -> &[&'a StreamCounts] {
        self.flows_by_file.get(file)
    }

    /// Flows that go out, or in.
    pub fn toward(&self, direction: Direction) -> impl Iterator<Item = &'a StreamCounts> + use<'a> {
        self.recording.counts.iter().filter(move |flow| flow.direction == direction && flow.is_known())
    }

    /// All openings together of the streams that go out, or in, of which one is of interest by itself: the figures that are
    /// said of a stream are those of its row in the table.
    pub fn sums(
        &self,
        direction: Direction,
        is_one: impl Fn(&StreamCounts) -> bool,
    ) -> impl Iterator<Item = &StreamCounts> {
        let streams = self.streams.all().iter().filter(move |stream| stream.sum.direction == direction);
        let chosen = streams.filter(move |stream| stream.openings.iter().any(|flow| is_one(flow)));
        chosen.map(|stream| &*stream.sum)
    }

    /// How many streams there were, but for what is of no known one.
    pub fn known_streams(&self) -> usize {
        self.streams.all().iter().filter(|stream| stream.sum.is_known()).count()
    }

    /// Whether bytes went through streams of which nothing else is known.
    pub fn moved_unseen(&self) -> bool {
        self.streams.all().iter().any(|stream| !stream.sum.is_known() && stream.sum.calls > 0)
    }

    /// The image that a process ran at a time, with its number.
    pub fn image_at(&self, pid: u32, at_s: f64) -> Option<(usize, &'a Image)> {
        self.process(pid)?.image_at(at_s)
    }

    /// The open file behind a descriptor at a time: from its flows, its calls, or what the parent had there.
    pub fn file_at(&self, pid: u32, fd: i32, at_s: f64) -> Option<u32> {
        let mut at = (pid, at_s);
        // A chain of parents longer than this is no family but a broken recording.
        for _ in 0..64 {
            if let Some(file) = self.own_file_at(at.0, fd, at.1) {
                return Some(file);
            }
            let process = self.process(at.0)?;
            at = (process.parent?, self.forked_at(at.0));
        }
        None
    }

    fn own_file_at(&self, pid: u32, fd: i32, at_s: f64) -> Option<u32> {
        let files = self.behind.get(&(pid, fd))?;
        let after = files.partition_point(|(since, _)| *since <= at_s);
        files.get(after.saturating_sub(1)).map(|(_, file)| *file)
    }

    /// The calls of a process that were looked at between two times, both left out.
    pub fn calls_between(&self, pid: u32, from_s: f64, to_s: f64) -> &[Seen<'a>] {
        let calls = self.calls(pid);
        let first = calls.partition_point(|seen| seen.at_s <= from_s);
        let end = calls.partition_point(|seen| seen.at_s < to_s).max(first);
        &calls[first..end]
    }

    /// Whether a process may have made calls between two times that nobody saw.
    pub fn looked_away(&self, pid: u32, from_s: f64, to_s: f64) -> bool {
        let spans = [pid, 0].into_iter().filter_map(|who| self.unwatched.get(&who)).flatten();
        spans.into_iter().any(|&(since_s, until_s)| since_s < to_s && until_s > from_s)
    }

    /// When a process came to be.
    pub fn forked_at(&self, pid: u32) -> f64 {
        let started = || self.process(pid).map_or(0.0, |process| process.started_s);
        self.forked.get(&pid).copied().unwrap_or_else(started)
    }

    /// When it ended, or the end of the recording.
    pub fn ended_at(&self, pid: u32) -> f64 {
        self.process(pid).and_then(|process| process.ended_s).unwrap_or(self.recording.elapsed_s)
    }

    /// Whether `pid` is a child, or a child's child …, of `ancestor`.
    pub fn descends(&self, pid: u32, ancestor: u32) -> bool {
        let mut current = pid;
        for _ in 0..64 {
            match self.process(current).and_then(|process| process.parent) {
                Some(parent) if parent == ancestor => return true,
                Some(parent) => current = parent,
                None => return false,
            }
        }
        false
    }

    /// What two openings of one thing have in common: the pipe, or the file's number.
    pub fn target(&self, file: u32) -> String {
        match self.file(file) {
            // A FIFO may have several names as a file may; of a pipe without a name the number is in its path.
            Some(file) if file.ino != 0 && (file.kind == StreamKind::File || is_fifo(file)) => {
                format!("{}:{}", file.dev, file.ino)
            }
            Some(file) if file.path.is_empty() => format!("#{}", file.id),
            Some(file) => file.path.clone(),
            None => format!("#{file}"),
        }
    }

    /// Whether everyone who read from this pipe had ended by then.
    pub fn reader_gone(&self, file: u32, at_s: f64) -> bool {
        if !matches!(self.kind(file), StreamKind::Pipe | StreamKind::Socket) {
            return false;
        }
        let target = self.target(file);
        let mut readers =
            self.toward(Direction::In).filter(|flow| self.target(flow.file) == target).peekable();
        readers.peek().is_some() && readers.all(|flow| self.ended_at(flow.pid) <= at_s)
    }

    /// Whether a descriptor leads where bytes go to be forgotten.
    pub fn is_null(&self, file: u32) -> bool {
        self.file(file).is_some_and(|file| file.path == "/dev/null")
    }
}

fn is_fifo(file: &OpenFile) -> bool {
    file.kind == StreamKind::Pipe && file.path.starts_with('/')
}

/// Whether two of a kind of text begin alike as far as both are known; nothing known is nothing alike.
pub(crate) fn same_beginning(one: &[u8], other: &[u8]) -> bool {
    let common = one.len().min(other.len());
    common > 0 && one[..common] == other[..common]
}
