//! Makes a recording from raw events: follows descriptors by open, dup, fork, exec and close, and sums calls and bytes
//! per stream. Every backend delivers its events here, so a finding does not depend on the backend.

mod buffer_snapshots;
mod event_order;
mod fd_revalidation;
mod fd_snapshots;
mod fd_table;
mod file_aliases;
mod file_positions;
mod gap_attribution;
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

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
pub use output::RecorderOutput;
use weir_model::trace::{Buffer, Call, Event, EventKind, Image, IoTotals, Op, OpenFile, Process, Rename};
use weir_sys::proc;
use weir_trace_api::{RawCall, RawEvent, RawEventKind, RawFile};

use fd_table::{FdEntry, FdTable};
use file_positions::FilePositions;
use open_files::OpenFileTable;
use other_calls::OtherCallCounts;
use renames::ExistingNames;
use sampling_gaps::SamplingGaps;
use streams::StreamTotals;
use untracked_transfers::UntrackedTransfers;

/// Events kept; a longer recording says how many more there were.
const MOST_EVENTS: usize = 1_000_000;
/// So many events there may be until calls are no longer told one by one where that was asked for.
const MOST_TOLD: usize = 20_000;
/// Repeated events of one kind of one descriptor (lseek) that are kept.
const MOST_ALIKE: u32 = 64;

/// A process that has not ended.
#[derive(Debug, Default)]
struct Live {
    process: usize,
    image: u32,
    descriptors: Arc<std::sync::Mutex<FdTable>>,
    at_start: Option<IoTotals>,
    latest: Option<IoTotals>,
    unwatched_since_s: Option<f64>,
    after_fork: u32,
    alike: HashMap<(Op, i32), u32>,
    /// When the last call of each thread was told.
    told_ns: HashMap<u32, u64>,
    pauses: SamplingGaps,
}

/// Takes reports one after the other.
#[derive(Debug)]
pub struct Recorder {
    start_ns: u64,
    processes: Vec<Process>,
    live: HashMap<u32, Live>,
    files: OpenFileTable,
    flows: StreamTotals,
    positions: FilePositions,
    /// Files that were seen by glances alone.
    glanced: Vec<u32>,
    others: OtherCallCounts,
    beside: UntrackedTransfers,
    existing: ExistingNames,
    events: Vec<Event>,
    left_out: u64,
    tells_all: bool,
    /// The process that will become the command at its first execve(2), and is weir until then.
    command: Option<u32>,
    unwatched_since_s: Option<f64>,
    latest_s: f64,
    /// At present nobody's calls are seen.
    pauses_now: bool,
    /// When nothing was seen of a process, and (0) of anybody.
    unwatched: HashMap<u32, Vec<(f64, f64)>>,
}

impl Recorder {
    /// A recording that begins at `start_ns` (CLOCK_MONOTONIC). `told_by_kernel`: the engine says what is
    /// behind each descriptor.
    pub fn new(start_ns: u64, told_by_kernel: bool) -> Self {
        Self {
            start_ns,
            processes: Vec::new(),
            live: HashMap::new(),
            files: OpenFileTable::new(told_by_kernel),
            flows: StreamTotals::default(),
            positions: FilePositions::default(),
            glanced: Vec::new(),
            others: OtherCallCounts::default(),
            beside: UntrackedTransfers::default(),
            existing: ExistingNames::default(),
            command: None,
            events: Vec::new(),
            left_out: 0,
            tells_all: false,
            unwatched_since_s: None,
            latest_s: 0.0,
            pauses_now: false,
            unwatched: HashMap::new(),
        }
    }

    /// Every call is to be an event.
    pub fn telling_all(self, tells_all: bool) -> Self {
        Self { tells_all, ..self }
    }

    /// This process was started by weir, to become the command.
    pub fn of_command(self, command: Option<u32>) -> Self {
        Self { command, ..self }
    }

    fn seconds(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Takes one report.
    pub fn take(&mut self, mut raw: RawEvent) {
        let at_s = self.seconds(raw.ns);
        if let RawEventKind::Call(call) = &mut raw.kind {
            self.place(raw.pid, call);
        }
        self.latest_s = self.latest_s.max(at_s);
        match raw.kind {
            RawEventKind::Begin => self.begin(raw.pid, at_s),
            RawEventKind::File { fd, file, name } => self.file(raw.pid, fd, &file, &name),
            RawEventKind::Call(ref call) => self.call(&raw, call, at_s),
            RawEventKind::Counts(counts) => {
                let fd = counts.counts.fd;
                let (image, file) = (self.image(raw.pid, at_s), self.file_of(raw.pid, fd));
                self.others.note_counts((raw.pid, image), file, &counts);
                if let Some((ns, to)) = counts.last_unreported_seek {
                    self.event(
                        self.seconds(ns),
                        raw.pid,
                        raw.tid,
                        EventKind::Call(streams::seek(fd, file, to)),
                    );
                }
                self.flows.add_counts(image, file, *counts, self.start_ns);
            }
            RawEventKind::Fork { child, shares_files } => {
                self.fork(raw.pid, raw.tid, child, shares_files, at_s)
            }
            RawEventKind::Exec { exe, comm, argv } => {
                self.exec(raw.pid, raw.tid, Image { started_s: at_s, exe, comm, argv })
            }
            RawEventKind::Exit { exit, io, usage } => self.exit(raw.pid, exit, io, &usage, at_s),
            RawEventKind::Signal { number } => {
                self.event(at_s, raw.pid, raw.tid, EventKind::Signal { number })
            }
            RawEventKind::Buffers { moment, buffers, blocked_in, open_files } => {
                self.live_of(raw.pid, at_s);
                let files = self.files_of(raw.pid, &buffers, open_files);
                if self.events.len() >= MOST_EVENTS
                    || buffer_snapshots::join(&mut self.events, raw.pid, moment, at_s, &buffers, &files)
                {
                    return;
                }
                let waits = Op::ALL.iter().copied().find(|op| op.name() == blocked_in);
                let what =
                    EventKind::Buffers { moment, buffers, waits_in: waits, waits_in_name: blocked_in, files };
                self.event(at_s, raw.pid, raw.tid, what);
            }
            RawEventKind::Gap { until_ns } => self.unwatched(raw.pid, at_s, until_ns),
            RawEventKind::FdSnapshot => self.glance(raw.pid),
            RawEventKind::GapEdge { totals, ends } => self.pause(raw.pid, totals, ends, at_s),
            RawEventKind::Totals(totals) => {
                self.live_of(raw.pid, at_s);
                if let Some(live) = self.live.get_mut(&raw.pid) {
                    live.at_start.get_or_insert(totals);
                    live.latest = Some(totals);
                }
            }
        }
    }

    fn event(&mut self, at_s: f64, pid: u32, tid: u32, what: EventKind) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(Event { at_s, pid, tid, kind: what });
        } else {
            self.left_out += 1;
        }
    }

    /// The process, made if a report of it comes before its beginning.
    fn live_of(&mut self, pid: u32, at_s: f64) -> &mut Live {
        if !self.live.contains_key(&pid) {
            let process = self.new_process(pid, None, at_s);
            self.live.insert(pid, Live { process, ..Live::default() });
        }
        self.live.get_mut(&pid).expect("it was just put there")
    }

    fn image(&mut self, pid: u32, at_s: f64) -> u32 {
        self.live_of(pid, at_s).image
    }

    fn begin(&mut self, pid: u32, at_s: f64) {
        self.live_of(pid, at_s);
        let table = fd_table::from_proc(pid, &mut self.files);
        self.live_of(pid, at_s).descriptors = Arc::new(std::sync::Mutex::new(table));
        if let Some(directory) = proc::directory(pid).filter(|_| self.files.told_by_kernel) {
            self.existing.list(&directory);
        }
    }

    fn with_table<T>(&mut self, pid: u32, act: impl FnOnce(&mut FdTable, &mut OpenFileTable) -> T) -> T {
        let table = Arc::clone(&self.live_of(pid, 0.0).descriptors);
        let mut table = table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        act(&mut table, &mut self.files)
    }

    fn file(&mut self, pid: u32, fd: i32, file: &RawFile, name: &str) {
        self.with_table(pid, |table, files| {
            let known = table.get(&fd).copied();
            let id = files.seen(known.map(|known| known.file), (file, name), pid, fd);
            let close_on_exec = known.is_some_and(|known| known.close_on_exec);
            table.insert(fd, FdEntry::new(id, close_on_exec));
        });
    }

    fn file_of(&mut self, pid: u32, fd: i32) -> u32 {
        self.with_table(pid, |table, files| {
            fd_revalidation::current(table, files, pid, fd).unwrap_or_else(|| {
                let id = files.unknown(pid, fd);
                table.insert(fd, FdEntry::new(id, false));
                id
            })
        })
    }

    /// What is behind the descriptors of streams: `behind`, as far as that was looked up, else what was followed.
    fn files_of(&mut self, pid: u32, buffers: &[Buffer], behind: Vec<(i32, OpenFile)>) -> Vec<(i32, u32)> {
        let mut fds: Vec<i32> = buffers.iter().map(|buffer| buffer.fd).collect();
        fds.sort_unstable();
        fds.dedup();
        let pauses = self.pauses_now || self.live_of(pid, 0.0).pauses.is_now();
        self.with_table(pid, |table, files| {
            if pauses && !files.told_by_kernel {
                fd_revalidation::doubt(table);
            }
            for (fd, now) in behind {
                fd_revalidation::put(table, files, fd, now);
            }
            let mut of = |fd: i32| {
                let known = table.contains_key(&fd);
                // What a name stood for once is not what is lost there.
                let lost = |files: &mut OpenFileTable| known.then(|| files.unnamed(fd));
                let file = fd_revalidation::current(table, files, pid, fd).or_else(|| lost(files))?;
                Some((fd, file))
            };
            fds.into_iter().filter_map(&mut of).collect()
        })
    }

    fn call(&mut self, raw: &RawEvent, call: &RawCall, at_s: f64) {
        let pid = raw.pid;
        let image = self.image(pid, at_s);
        self.others.note((pid, image), call);
        self.beside.note_ring(pid, call);
        let moves = call.op.reads() || call.op.writes() || call.op.copies();
        let mut told = !moves;
        if moves && !call.counted {
            told = self.count(pid, image, call, raw.ns);
            told |= self.tells_all && self.events.len() < MOST_TOLD;
        }
        // What is closed is known for the last time, what is opened only afterwards.
        let fd = fd_table::descriptor_of(call);
        let file = self.with_table(pid, |table, files| {
            // What a number that is given up stood for is not known behind a pause.
            let gives_up = matches!(call.op, Op::Close | Op::Dup2 | Op::Dup3);
            let before = match gives_up && table.get(&fd).is_some_and(|known| known.stale) {
                true => None,
                false => fd_revalidation::current(table, files, pid, fd),
            };
            fd_table::follow(table, files, call, pid);
            before.or_else(|| table.get(&fd).map(|known| known.file))
        });
        let told_ns = self.live_of(pid, at_s).told_ns.insert(raw.tid, raw.ns).unwrap_or(0);
        if let (Some(file), true) = (file, call.result >= 0 && !call.counted) {
            let began_ns = call.began_ns.unwrap_or(0).max(told_ns);
            let lasted_s = at_s - self.seconds(began_ns);
            self.flows.note((pid, image, fd, file), call, at_s, (began_ns > 0).then_some(lasted_s));
            self.replace(file, call);
            self.beside.note_mapping(&self.files, pid, file, call);
        }
        let rename = self.learn(pid, call, raw.ns);
        if (told || call.counted) && self.is_new(pid, call, fd) {
            let asked = streams::asked(call);
            let event = Call {
                op: call.op,
                fd,
                file,
                args: call.args,
                result: call.result,
                asked,
                position: call.position,
                head: call.head.clone(),
                tail: call.tail,
                paths: call.paths.clone(),
                rename: rename.map(Box::new),
            };
            self.event(at_s, pid, raw.tid, EventKind::Call(event));
        }
    }

    fn learn(&mut self, pid: u32, call: &RawCall, ns: u64) -> Option<Rename> {
        if call.paths.is_empty() {
            return None;
        }
        let table = Arc::clone(&self.live_of(pid, 0.0).descriptors);
        let mut table = table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.existing.learn((&mut table, &mut self.files), call, pid, ns)
    }

    /// A call that no kernel counted; true when it is worth an event as well.
    fn count(&mut self, pid: u32, image: u32, call: &RawCall, ns: u64) -> bool {
        let mut told = false;
        for (fd, direction) in fd_table::sides(call) {
            if call.result == -i64::from(libc::EBADF) {
                continue;
            }
            let file = self.file_of(pid, fd);
            let regular = self.files.is_regular(file);
            let after_fork = self.live_of(pid, 0.0).after_fork < streams::FIRST_CALLS;
            let relative = ns.saturating_sub(self.start_ns);
            told |=
                self.flows.add_call((pid, image, fd, file, direction), call, relative, regular, after_fork);
            if after_fork && call.op.writes() {
                self.live_of(pid, 0.0).after_fork += 1;
            }
        }
        told
    }

    /// The same rare call of the same descriptor over and over is told only so often.
    fn is_new(&mut self, pid: u32, call: &RawCall, fd: i32) -> bool {
        if !matches!(
            call.op,
            Op::Lseek | Op::Fsync | Op::Fdatasync | Op::SyncFileRange | Op::Mmap | Op::Fadvise
        ) && !call.op.submits()
        {
            return true;
        }
        let count = self.live_of(pid, 0.0).alike.entry((call.op, fd)).or_default();
        *count += 1;
        *count <= MOST_ALIKE
    }

    /// The end: processes that run on keep what they have.
    pub fn finish(mut self) -> RecorderOutput {
        let running: Vec<Live> = self.live.drain().map(|(_, live)| live).collect();
        let at_s = self.latest_s;
        for live in running {
            self.settle(live, None, at_s);
        }
        self.settle_unwatched();
        let others = std::mem::take(&mut self.others).finish(&self.partly_seen());
        let glanced_below = self.glanced_below();
        let beside = self.beside.sentences(&others, &self.files.all);
        event_order::sort(&mut self.events);
        RecorderOutput {
            processes: self.processes,
            files: self.files.all,
            flows: self.flows.all,
            others,
            events: self.events,
            left_out: self.left_out,
            glanced_below,
            submits: self.beside.submits(),
            beside,
        }
    }
}
