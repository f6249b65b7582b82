//! Makes a recording from raw events: follows descriptors by open, dup, fork, exec and close, and sums calls
//! and bytes per stream. Every backend delivers its events here, so a finding does not depend on the backend.
//!
//! [`Recorder::record`] takes each event. `fd_table` and `open_files` resolve its descriptor to an open file,
//! `streams` adds its bytes, `other_calls` counts the calls that move none. [`Recorder::finish`] adds
//! estimates for what a sampling backend did not observe (`sampling_gaps`, `gap_attribution`, `scaling`) and returns the parts of
//! the recording.

mod blocked_calls;
mod buffer_snapshots;
mod calls;
mod event_order;
mod fd_revalidation;
mod fd_snapshots;
mod fd_table;
mod file_aliases;
mod file_positions;
mod file_room;
mod gap_attribution;
mod gap_image;
mod lifecycle;
mod open_files;
mod other_calls;
mod output;
mod paths;
mod renames;
mod sampling_gaps;
mod scaling;
mod streams;
#[cfg(test)]
mod tests;
mod unobserved_spans;
mod untracked_transfers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
pub use output::RecorderOutput;
use weir_model::Untrusted;
use weir_model::trace::{Buffer, Event, EventKind, Image, IoTotals, Op, OpenFile, Process, SnapshotMoment};
use weir_sys::proc;
use weir_trace_api::{RawEvent, RawEventKind, RawFile};

use fd_table::{FdEntry, FdTable};
use file_positions::FilePositions;
use open_files::OpenFileTable;
use other_calls::OtherCallCounts;
use renames::ExistingNames;
use sampling_gaps::SamplingGaps;
use streams::StreamTotals;
use untracked_transfers::UntrackedTransfers;

/// Limit of events in a recording, which bounds its memory; `RecorderOutput::dropped_events` counts the rest.
const MAX_EVENTS: usize = if cfg!(test) { 1_000 } else { 1_000_000 };

/// The state of a process that has not exited.
#[derive(Debug, Default)]
struct LiveProcess {
    /// Index in `Recorder::processes`.
    process: usize,
    /// Index of the current image in its process.
    image: u32,
    descriptors: Arc<std::sync::Mutex<FdTable>>,
    totals_at_start: Option<IoTotals>,
    latest_totals: Option<IoTotals>,
    unobserved_since_s: Option<f64>,
    /// Number of writes since the start of the process or of its image that became events, up to [`weir_model::trace::FIRST_CALLS`].
    writes_after_fork: u32,
    repeated_calls: HashMap<(Op, i32), u32>,
    /// CLOCK_MONOTONIC time of the last reported call, by thread.
    last_call_ns: HashMap<u32, u64>,
    gaps: SamplingGaps,
    /// The time of the first buffer snapshot at its end.
    ended_s: Option<f64>,
}

/// Builds a recording from the events of one backend, in the order in which they arrive.
#[derive(Debug)]
pub struct Recorder {
    start_ns: u64,
    processes: Vec<Process>,
    live: HashMap<u32, LiveProcess>,
    files: OpenFileTable,
    streams: StreamTotals,
    positions: FilePositions,
    /// Ids of the files that only an fd snapshot found.
    snapshot_files: Vec<u32>,
    /// Processes with more descriptors than are read at once.
    many_descriptors: BTreeSet<String>,
    /// See [`RecorderOutput::open_at_kill`].
    open_at_kill: BTreeMap<u32, Vec<(i32, u32)>>,
    other_calls: OtherCallCounts,
    untracked: UntrackedTransfers,
    existing_names: ExistingNames,
    events: Vec<Event>,
    dropped_events: u64,
    every_call: bool,
    /// The process that becomes the command at its first execve(2). Until then it runs weir's image.
    command: Option<u32>,
    unobserved_since_s: Option<f64>,
    latest_s: f64,
    /// The time of the latest buffer snapshot of any process.
    latest_snapshot_s: f64,
    /// A gap of all processes is in progress.
    in_global_gap: bool,
    /// The end of the last gap of all processes, in seconds.
    window_start_s: f64,
    /// Spans (start, end) without recorded calls, in seconds, by PID. PID 0 means all processes.
    unobserved_spans: HashMap<u32, Vec<(f64, f64)>>,
    /// The part of a process's calls on sockets that the kernel's totals contain (0 to 1).
    counted_parts: HashMap<(u32, weir_model::Direction), f64>,
    /// Streams whose counts contain calls of gaps.
    estimated_streams: HashSet<streams::StreamKey>,
    /// Calls that have blocked since tracing began, with their duration in seconds.
    blocked_calls: Vec<(streams::StreamKey, f64)>,
}

impl Recorder {
    /// Creates a recorder whose time 0 is `start_ns` (CLOCK_MONOTONIC). With `kernel_reports_files` the backend
    /// reports the open file of each descriptor, so the recorder does not read /proc for it.
    pub fn new(start_ns: u64, kernel_reports_files: bool) -> Self {
        Self {
            start_ns,
            processes: Vec::new(),
            live: HashMap::new(),
            files: OpenFileTable::new(kernel_reports_files),
            streams: StreamTotals::default(),
            positions: FilePositions::default(),
            snapshot_files: Vec::new(),
            many_descriptors: BTreeSet::new(),
            open_at_kill: BTreeMap::new(),
            other_calls: OtherCallCounts::default(),
            untracked: UntrackedTransfers::default(),
            existing_names: ExistingNames::default(),
            command: None,
            events: Vec::new(),
            dropped_events: 0,
            every_call: false,
            unobserved_since_s: None,
            latest_s: 0.0,
            latest_snapshot_s: 0.0,
            in_global_gap: false,
            window_start_s: 0.0,
            unobserved_spans: HashMap::new(),
            counted_parts: HashMap::new(),
            estimated_streams: HashSet::new(),
            blocked_calls: Vec::new(),
        }
    }

    /// Sets whether every read and write becomes an event.
    pub fn with_every_call(self, every_call: bool) -> Self {
        Self { every_call, ..self }
    }

    /// Sets the process that weir forked to execute the command.
    pub fn with_command(self, command: Option<u32>) -> Self {
        Self { command, ..self }
    }

    fn seconds(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Adds one event to the recording.
    pub fn record(&mut self, mut raw: RawEvent) {
        let at_s = self.seconds(raw.ns);
        if let RawEventKind::Call(call) = &mut raw.kind {
            calls::limit_result(call);
            self.fill_position(raw.pid, call);
        }
        self.latest_s = self.latest_s.max(at_s);
        match raw.kind {
            RawEventKind::Begin => self.begin(raw.pid, at_s),
            RawEventKind::File { fd, file, name } => self.enter_file(raw.pid, fd, &file, &name),
            RawEventKind::Directory(directory) => self.files.directories.report(raw.pid, &directory),
            RawEventKind::Call(ref call) => self.record_call(&raw, call, at_s),
            RawEventKind::Counts(counts) => self.record_counts(raw.pid, raw.tid, *counts, at_s),
            RawEventKind::Fork { child, shares_files } => {
                self.fork(raw.pid, raw.tid, child, shares_files, at_s)
            }
            RawEventKind::Exec { exe, comm, argv } => {
                self.exec(raw.pid, raw.tid, Image { started_s: at_s, exe, comm, argv, ..Image::default() })
            }
            RawEventKind::Exit { exit, io, usage } => self.exit(raw.pid, exit, io, &usage, at_s),
            RawEventKind::Signal { number } => {
                self.push_event(at_s, raw.pid, raw.tid, EventKind::Signal { number })
            }
            RawEventKind::Buffers { moment, buffers, blocked_in, open_files, read_until_ns } => {
                self.live_process(raw.pid, at_s);
                let files = self.files_of_buffers(raw.pid, &buffers, open_files);
                let waits_in = Op::ALL.iter().copied().find(|op| op.name() == blocked_in);
                let snapshot = EventKind::Buffers {
                    moment,
                    buffers,
                    waits_in,
                    waits_in_name: blocked_in,
                    files,
                    read_until_s: read_until_ns.map(|ns| self.seconds(ns)),
                };
                self.record_buffers(raw.pid, raw.tid, at_s, snapshot);
            }
            // weir-observe handles it.
            RawEventKind::Unstopped | RawEventKind::UnstoppedFork => {}
            RawEventKind::Gap { until_ns } => self.record_gap(raw.pid, at_s, until_ns),
            RawEventKind::FdSnapshot => self.take_fd_snapshot(raw.pid),
            RawEventKind::GapEdge { totals, ends } => self.record_gap_edge(raw.pid, totals, ends, at_s),
            RawEventKind::Totals(totals) => self.record_totals(raw.pid, totals, at_s),
        }
    }

    fn record_totals(&mut self, pid: u32, totals: IoTotals, at_s: f64) {
        let live = self.live_process(pid, at_s);
        live.totals_at_start.get_or_insert(totals);
        live.latest_totals = Some(totals);
    }

    /// Adds a buffer snapshot, unless it is part of an earlier one.
    fn record_buffers(&mut self, pid: u32, tid: u32, at_s: f64, snapshot: EventKind) {
        let EventKind::Buffers { moment, buffers, files, .. } = &snapshot else { return };
        self.latest_snapshot_s = self.latest_snapshot_s.max(at_s);
        let live = self.live_process(pid, at_s);
        match moment {
            SnapshotMoment::Exit | SnapshotMoment::Signal => drop(live.ended_s.get_or_insert(at_s)),
            // The watch of the buffers reads a dying process, too, but does not know what its last write has written.
            SnapshotMoment::Sample if live.ended_s.is_some_and(|ended_s| ended_s <= at_s) => return,
            _ => {}
        }
        // An execve(2) ends the other threads. The snapshot of such a thread stays apart from that of the process.
        let of_other_thread = *moment == SnapshotMoment::Exec && tid != pid;
        let is_joined = !of_other_thread
            && buffer_snapshots::join_snapshot(&mut self.events, pid, *moment, at_s, buffers, files);
        if !is_joined {
            self.push_event(at_s, pid, tid, snapshot);
        }
    }

    fn push_event(&mut self, at_s: f64, pid: u32, tid: u32, kind: EventKind) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(Event { at_s, pid, tid, kind });
        } else {
            self.dropped_events += 1;
        }
    }

    /// Returns the state of a process. Creates it if an event precedes the process's begin event.
    fn live_process(&mut self, pid: u32, at_s: f64) -> &mut LiveProcess {
        if !self.live.contains_key(&pid) {
            let process = self.new_process(pid, None, at_s);
            self.live.insert(pid, LiveProcess { process, ..LiveProcess::default() });
        }
        self.live.get_mut(&pid).expect("it was inserted above")
    }

    fn image(&mut self, pid: u32, at_s: f64) -> u32 {
        self.live_process(pid, at_s).image
    }

    fn begin(&mut self, pid: u32, at_s: f64) {
        self.live_process(pid, at_s);
        let (table, is_complete) = fd_table::from_proc(pid, &mut self.files);
        if !is_complete {
            self.many_descriptors.insert(proc::label(pid));
        }
        self.live_process(pid, at_s).descriptors = Arc::new(std::sync::Mutex::new(table));
        if let Some(directory) = proc::directory(pid).filter(|_| self.files.kernel_reports_files) {
            self.existing_names.list(&directory);
        }
    }

    fn with_table<T>(&mut self, pid: u32, act: impl FnOnce(&mut FdTable, &mut OpenFileTable) -> T) -> T {
        let table = Arc::clone(&self.live_process(pid, 0.0).descriptors);
        let mut table = table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        act(&mut table, &mut self.files)
    }

    fn enter_file(&mut self, pid: u32, fd: i32, file: &RawFile, name: &Untrusted) {
        self.with_table(pid, |table, files| {
            let known = table.get(&fd).copied();
            let id = files.enter_reported(known.map(|known| known.file), (file, name), pid, fd);
            let close_on_exec = known.is_some_and(|known| known.close_on_exec);
            table.insert(fd, FdEntry::new(id, close_on_exec));
        });
    }

    fn file_of(&mut self, pid: u32, fd: i32) -> u32 {
        self.with_table(pid, |table, files| {
            fd_revalidation::lookup(table, files, pid, fd).unwrap_or_else(|| {
                let id = files.add_unknown(pid, fd);
                table.insert(fd, FdEntry::new(id, false));
                id
            })
        })
    }

    /// Returns the open file of each buffer's descriptor: from `resolved_files` where the backend looked it up,
    /// otherwise from the descriptor table.
    fn files_of_buffers(
        &mut self,
        pid: u32,
        buffers: &[Buffer],
        resolved_files: Vec<(i32, OpenFile)>,
    ) -> Vec<(i32, u32)> {
        let mut fds: Vec<i32> = buffers.iter().map(|buffer| buffer.fd).collect();
        fds.sort_unstable();
        fds.dedup();
        let gaps = self.in_global_gap || self.live_process(pid, 0.0).gaps.in_gap();
        self.with_table(pid, |table, files| {
            if gaps && !files.kernel_reports_files {
                fd_revalidation::mark_stale(table);
            }
            for (fd, file) in resolved_files {
                fd_revalidation::enter(table, files, fd, file);
            }
            let mut file_at = |fd: i32| {
                let known = table.contains_key(&fd);
                // The descriptor can refer to another file by now, so its old name is not used.
                let unnamed = |files: &mut OpenFileTable| known.then(|| files.add_unnamed(fd));
                let file = fd_revalidation::lookup(table, files, pid, fd).or_else(|| unnamed(files))?;
                Some((fd, file))
            };
            fds.into_iter().filter_map(&mut file_at).collect()
        })
    }

    /// Ends the recording and returns its parts. `Process::exit` is None for processes that still run.
    pub fn finish(mut self) -> RecorderOutput {
        let running: Vec<LiveProcess> = self.live.drain().map(|(_, live)| live).collect();
        let at_s = self.latest_s;
        for live in running {
            self.settle_process(live, None, at_s);
        }
        self.settle_unobserved_spans();
        self.settle_blocked_calls();
        let sampled = self.partly_observed();
        let other_calls = std::mem::take(&mut self.other_calls).finish(&sampled);
        let snapshot_directory = self.snapshot_directory();
        let untracked_transfers = self.untracked.sentences(&other_calls, &self.files.all, &sampled);
        event_order::sort(&mut self.events);
        RecorderOutput {
            processes: self.processes,
            files: self.files.all,
            open_at_kill: self.open_at_kill,
            streams: self.streams.all,
            other_calls,
            events: self.events,
            dropped_events: self.dropped_events,
            snapshot_directory,
            submits: self.untracked.submits(),
            untracked_transfers,
            unread_descriptors: self.many_descriptors.iter().map(|process| unread_text(process)).collect(),
        }
    }
}

fn unread_text(process: &str) -> String {
    format!(
        "descriptors of {process} beyond the first {}, until a call used them",
        fd_table::MAX_READ_AT_ONCE
    )
}
