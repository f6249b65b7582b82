//! Takes buffer snapshots of the observed processes: from time to time while they sleep, and when a backend asks.
//!
//! Snapshots cost at most one hundredth of one CPU, plus an advance: the CPU time of each is measured and charged to a
//! credit, and no snapshot is taken while the credit is used up. Processes with empty buffers are read less and less
//! often. The searches for new streams at forks and exits, during which the process is stopped, have their own credit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::time::{Duration, Instant};

use weir_inspect::ProcessBuffers;
use weir_inspect::call_sites::{CallSamples, CallSites, MAX_WATCHED_STREAMS};
use weir_model::Mode;
use weir_model::trace::{Buffer, SampledCall, SnapshotMoment, WriteSite};
use weir_sys::blocking_calls;
use weir_sys::clock::{self, now_ns, thread_cpu_ns};
use weir_sys::executing_processes::ExecutingProcesses;
use weir_sys::proc;
use weir_sys::process_stat::{self, ProcessStat};
use weir_trace_api::{EventSink, RawEvent, RawEventKind};
use weir_walkers::{set_search_time, take_search_cut};

use crate::cpu_credit::CpuCredit;

#[cfg(test)]
mod tests;

const MILLISECOND: u64 = 1_000_000;
/// The interval of snapshots of a process with bytes in its buffers.
const INTERVAL_NS: u64 = 100 * MILLISECOND;
/// The longest interval of a process with empty buffers. Bytes that stay pending for a second, which the finding
/// stuck-output reports, must be seen early in that second.
const INTERVAL_MAX_NS: u64 = 400 * MILLISECOND;
/// The delay of the first snapshot. It is short, so that [`CallSites::suspend`] soon frees a busy program of watchpoints.
const FIRST_NS: u64 = 30 * MILLISECOND;
/// The interval at which unchanged pending bytes are reported again.
const REPEAT_NS: u64 = 500 * MILLISECOND;
/// The inverse of the share of time that snapshots may take. Together with the searches and the code around them, they take a
/// hundredth of one CPU.
const SNAPSHOT_SHARE: u64 = 200;
/// The cap of unused credit for snapshots. A backend does not wait for a tick longer than this.
const SNAPSHOT_CAP_NS: i64 = 2 * MILLISECOND as i64;
/// The advance for the first snapshots, which search for the streams. A short run does not earn enough for them.
const SNAPSHOT_ADVANCE_NS: i64 = 30 * MILLISECOND as i64;
/// The inverse of the share of time for searches of the memory by these snapshots. A search of a large heap takes as long as hundreds of
/// snapshots; if it used up their credit, streams that are known would not be read for many seconds.
const SAMPLE_SEARCH_SHARE: u64 = 250;
/// The advance for the first of these searches, and the cap.
const SAMPLE_SEARCH_CREDIT_NS: i64 = 30 * MILLISECOND as i64;

/// The CPU time of one search. At a fork or an exit the process is stopped.
const SEARCH_TIME: Duration = Duration::from_millis(250);
/// The inverse of the share of time for searches at forks and exits. Without a limit, a program that forks all the time would mostly stop.
const SEARCH_SHARE: u64 = 20;
/// The advance and the cap for searches: enough for the hundreds of forks and exits of an ordinary program.
const SEARCH_CREDIT_NS: i64 = 300 * MILLISECOND as i64;
/// A process whose last search is older than this is searched even without credit.
const SEARCH_MAX_AGE_NS: u64 = 100 * MILLISECOND;

/// Takes the buffer snapshots of all observed processes.
#[derive(Default)]
pub struct BufferWatch {
    processes: HashMap<u32, WatchedProcess>,
    /// When each process is due, CLOCK_MONOTONIC, and its PID. An entry is stale if the process's `due_ns` differs.
    schedule: BinaryHeap<Reverse<(u64, u32)>>,
    snapshot_credit: CpuCredit,
    sample_search_credit: CpuCredit,
    last_tick_ns: u64,
    call_sites: CallSites,
    call_samples: CallSamples,
    /// Search for new streams at every fork and exit, whatever the credit.
    exact: bool,
    search_credit: CpuCredit,
    /// See [`BufferWatch::take_unsearched`].
    unsearched: BTreeSet<u32>,
    /// See [`BufferWatch::take_kept_records`].
    kept_records: BTreeMap<u32, String>,
    /// See [`BufferWatch::take_flushing`].
    flushing: Vec<u64>,
    skipped_searches: u64,
    /// The largest number of threads of each process that had several.
    threads: HashMap<u32, u32>,
    pub(crate) executing: ExecutingProcesses,
}

#[derive(Default)]
struct WatchedProcess {
    buffers: ProcessBuffers,
    due_ns: u64,
    interval_ns: u64,
    /// The start of the process, clock ticks: another process may have got its number before its end is known here.
    start_ticks: Option<u64>,
    /// The CPU time at the last visit, clock ticks.
    cpu_ticks: Option<u64>,
    reported: Vec<Buffer>,
    reported_ns: u64,
    /// See [`BufferWatch::with_direct_errors`].
    has_direct_errors: bool,
}

/// Activity of a process since the last visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Slept,
    Ran,
    Unknown,
}

impl WatchedProcess {
    /// Returns whether this is the process that was seen at the first visit.
    fn is_same(&mut self, stat: &ProcessStat) -> bool {
        *self.start_ticks.get_or_insert(stat.start_ticks) == stat.start_ticks
    }

    /// Returns what the process did since the last visit, by its state and its CPU time.
    fn activity(&mut self, stat: Option<ProcessStat>) -> Activity {
        let Some(stat) = stat else { return Activity::Unknown };
        let ticks = stat.cpu_ticks();
        match self.cpu_ticks.replace(ticks) {
            Some(before) if ticks > before + 1 => Activity::Ran,
            Some(_) if stat.state == b'S' || stat.lacks_main_thread() => Activity::Slept,
            None if stat.state == b'R' && ticks > 1 => Activity::Ran,
            _ => Activity::Unknown,
        }
    }

    /// Returns whether the buffers are to be reported now, and notes them as reported.
    fn reports(&mut self, buffers: &[Buffer], now_ns: u64) -> bool {
        let due = self.reported != buffers || now_ns.saturating_sub(self.reported_ns) >= REPEAT_NS;
        if due {
            self.reported = buffers.to_vec();
            self.reported_ns = now_ns;
        }
        due
    }
}

impl BufferWatch {
    /// Makes a watch of no process.
    pub fn new() -> BufferWatch {
        BufferWatch {
            snapshot_credit: CpuCredit::with_advance(SNAPSHOT_ADVANCE_NS),
            sample_search_credit: CpuCredit::with_advance(SAMPLE_SEARCH_CREDIT_NS),
            search_credit: CpuCredit::with_advance(SEARCH_CREDIT_NS),
            ..BufferWatch::default()
        }
    }

    /// Sets whether every fork and exit searches for new streams, whatever it costs.
    #[must_use]
    pub fn with_exact(self, exact: bool) -> BufferWatch {
        BufferWatch { exact, ..self }
    }

    /// Returns a sentence about the searches that were skipped, if any.
    pub fn blind_spot(&self) -> Option<String> {
        (self.skipped_searches > 0).then(|| {
            format!(
                "streams that were opened shortly before {} of the forks and exits: the search for them was skipped, \
                 because it slows the program; --exact searches always",
                self.skipped_searches
            )
        })
    }

    /// Returns the largest observed number of threads of a process that had several; else 0.
    pub fn threads(&self, pid: u32) -> u32 {
        self.threads.get(&pid).copied().unwrap_or(0)
    }

    /// Begins to watch process `pid`.
    pub fn begin(&mut self, pid: u32) {
        self.add(pid, WatchedProcess::default());
    }

    /// Notes that a process has a new image since `at_ns`, CLOCK_MONOTONIC.
    pub fn exec(&mut self, pid: u32, at_ns: u64) {
        self.call_sites.exec(pid, at_ns);
        self.call_samples.end(pid);
        self.add(pid, WatchedProcess::default());
    }

    /// Begins to watch a child, which has its parent's image and a copy of its buffers. The buffers of a child that shares
    /// its parent's memory (vfork(2)) are not read until it calls execve(2).
    pub fn fork(&mut self, parent: u32, child: u32) {
        let of_parent = self.processes.get(&parent).map(|one| &one.buffers);
        let buffers = ProcessBuffers::of_child(of_parent, parent, child);
        self.call_sites.fork(parent, child);
        self.add(child, WatchedProcess { buffers, ..WatchedProcess::default() });
    }

    /// Forgets a process that has ended.
    pub fn end(&mut self, pid: u32) {
        self.call_sites.end(pid);
        self.call_samples.end(pid);
        self.processes.remove(&pid);
    }

    /// Notes the buffers that a snapshot has found, taken here or by a backend itself.
    pub fn note(&mut self, pid: u32, moment: SnapshotMoment, buffers: &[Buffer], at_ns: u64) {
        self.call_sites.note_snapshot(pid, moment, buffers, at_ns);
    }

    /// Returns the call sites that wrote pending bytes. `began_ns` is time 0 of the recording, CLOCK_MONOTONIC.
    pub fn take_write_sites(&mut self, began_ns: u64) -> Vec<WriteSite> {
        std::mem::take(&mut self.call_sites).finish(began_ns)
    }

    /// Returns the processes of whose memory a search left out a part.
    pub fn take_unsearched(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.unsearched)
    }

    /// Returns the records that programs kept as objects when a signal ended them, by process.
    pub fn take_kept_records(&mut self) -> BTreeMap<u32, String> {
        std::mem::take(&mut self.kept_records)
    }

    /// Returns the samples of small reads and writes. `began_ns` is time 0 of the recording, CLOCK_MONOTONIC.
    pub fn take_sampled_calls(&mut self, began_ns: u64) -> Vec<SampledCall> {
        std::mem::take(&mut self.call_samples).finish(began_ns)
    }

    /// Reads the buffers of a process now, at a stop before a fork, an execve(2) or an exit. `pid` may be a thread of it, through
    /// which its memory can be read if the first thread has ended.
    pub fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer> {
        set_search_time(SEARCH_TIME);
        let now_ns = now_ns();
        if moment == SnapshotMoment::Sample && self.executing.check(pid, now_ns) {
            return Vec::new();
        }
        self.search_credit.earn(now_ns, SEARCH_SHARE, SEARCH_CREDIT_NS);
        let affordable = self.exact || self.search_credit.left_ns > 0;
        let mut unknown = WatchedProcess::default();
        let one = self.processes.get_mut(&pid).unwrap_or(&mut unknown);
        match moment {
            SnapshotMoment::Sample => {}
            SnapshotMoment::Call => one.buffers.search_until_found(),
            _ if affordable || one.buffers.searched_before(now_ns.saturating_sub(SEARCH_MAX_AGE_NS)) => {
                one.buffers.search_again(now_ns);
            }
            _ => self.skipped_searches += 1,
        }
        let start_ns = thread_cpu_ns();
        let buffers = one.buffers.snapshot(pid);
        let process = || proc::process_of(pid).unwrap_or(pid);
        self.unsearched.extend(take_search_cut().then(process));
        if moment == SnapshotMoment::Signal {
            self.kept_records.extend(one.buffers.kept_records(pid).map(|records| (process(), records)));
        }
        if matches!(moment, SnapshotMoment::Sample | SnapshotMoment::Call) {
            watch_writes(&mut self.call_sites, pid, &one.buffers, &buffers);
        } else {
            self.search_credit.spend(thread_cpu_ns() - start_ns);
            one.buffers.take_search_ns();
            self.flushing = one.buffers.flushing(pid, &buffers);
        }
        buffers
    }

    /// Returns the addresses of the buffers that the process of the last snapshot may have written without noting it, if that
    /// was a snapshot at its end.
    pub fn take_flushing(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.flushing)
    }

    /// Returns the processes whose standard error is a stream without a buffer.
    pub fn with_direct_errors(&self) -> HashSet<u32> {
        let all = self.processes.iter().filter(|(_, one)| one.has_direct_errors);
        all.map(|(pid, _)| *pid).collect()
    }

    /// Starts to watch the writes of a command that is stopped after its C library is loaded. `list` is the address of
    /// glibc's list of streams.
    pub fn watch_image_start(&mut self, pid: u32, list: u64) {
        let mut streams = ProcessBuffers::with_glibc(list);
        let buffers = streams.snapshot(pid);
        let words = streams.write_positions(pid, &worth_watching(&self.call_sites, pid, &buffers));
        self.call_sites.watch_new_image(pid, &words);
    }

    /// Completes [`BufferWatch::watch_image_start`] after the command runs on.
    pub fn complete_image_start(&mut self, pid: u32) {
        self.call_sites.read_mappings(pid);
    }

    /// Visits the processes that are due and reports the pending bytes of those that sleep. The caller calls this about
    /// every 20 to 100 ms, by backend. It returns at once if no process is due.
    pub fn tick(&mut self, now_ns: u64, sink: &mut EventSink) {
        self.snapshot_credit.earn(now_ns, SNAPSHOT_SHARE, SNAPSHOT_CAP_NS);
        self.sample_search_credit.earn(now_ns, SAMPLE_SEARCH_SHARE, SAMPLE_SEARCH_CREDIT_NS);
        self.last_tick_ns = now_ns;
        self.call_sites.tick(now_ns);
        let (begun, mut start_ns) = (Instant::now(), thread_cpu_ns());
        while self.snapshot_credit.left_ns > 0 {
            let Some(&Reverse((due_ns, pid))) = self.schedule.peek().filter(|next| next.0.0 <= now_ns) else {
                break;
            };
            self.schedule.pop();
            let mut search_ns = 0;
            if self.processes.get(&pid).is_some_and(|one| one.due_ns == due_ns) {
                // The snapshot's time is now, not the tick's: writes since the tick come before the snapshot.
                search_ns = self.visit(pid, now_ns + begun.elapsed().as_nanos() as u64, sink);
            }
            let end_ns = thread_cpu_ns();
            self.sample_search_credit.spend(search_ns);
            self.snapshot_credit.spend((end_ns - start_ns).saturating_sub(search_ns));
            start_ns = end_ns;
        }
    }

    /// Visits a process. Returns the CPU time of the search for its streams.
    fn visit(&mut self, pid: u32, now_ns: u64, sink: &mut EventSink) -> u64 {
        let may_search = self.sample_search_credit.left_ns > 0;
        set_search_time(SEARCH_TIME);
        let Some(one) = self.processes.get_mut(&pid) else { return 0 };
        let mut interval_ns = INTERVAL_NS;
        let stat = if self.executing.check(pid, now_ns) { None } else { process_stat::read(pid) };
        let stat = stat.filter(|stat| one.is_same(stat));
        let activity = one.activity(stat);
        if let Some(threads) = stat.map(|stat| stat.threads).filter(|&threads| threads > 1) {
            let most = self.threads.entry(pid).or_default();
            *most = threads.max(*most);
        }
        if activity == Activity::Ran {
            self.call_sites.suspend(pid);
        }
        // Also one that slept: a program that waits for its many calls uses little CPU time.
        self.call_samples.poll(pid);
        if activity == Activity::Slept {
            let buffers = match may_search {
                true => one.buffers.snapshot(pid),
                false => one.buffers.snapshot_of_known(pid),
            };
            let read_until_ns = clock::now_ns();
            // The memory was read by the number.
            let is_same = process_stat::read(pid).is_some_and(|stat| one.is_same(&stat));
            let buffers = if is_same { buffers } else { Vec::new() };
            self.unsearched.extend(take_search_cut().then_some(pid));
            watch_writes(&mut self.call_sites, pid, &one.buffers, &buffers);
            one.has_direct_errors |= buffers.iter().any(is_direct_errors);
            let holds_bytes = buffers.iter().any(|one| one.pending_bytes > 0 || one.unread_bytes > 0);
            if !holds_bytes {
                interval_ns = (one.interval_ns * 2).min(INTERVAL_MAX_NS);
                one.reported.clear();
            } else if one.reports(&buffers, now_ns) {
                let blocked_in = blocking_calls::current(pid);
                let kind = RawEventKind::buffers(pid, SnapshotMoment::Sample, buffers, blocked_in)
                    .read_until(read_until_ns);
                sink(RawEvent { ns: now_ns, pid, tid: pid, kind });
            }
        }
        one.interval_ns = interval_ns;
        one.due_ns = now_ns + interval_ns;
        self.schedule.push(Reverse((one.due_ns, pid)));
        one.buffers.take_search_ns()
    }

    fn add(&mut self, pid: u32, mut one: WatchedProcess) {
        one.interval_ns = INTERVAL_NS;
        one.due_ns = self.last_tick_ns + FIRST_NS;
        self.schedule.push(Reverse((one.due_ns, pid)));
        self.processes.insert(pid, one);
    }
}

fn is_direct_errors(buffer: &Buffer) -> bool {
    buffer.fd == 2 && matches!(buffer.mode, None | Some(Mode::None))
}

/// Watches the writes to the streams that may need a call site.
fn watch_writes(call_sites: &mut CallSites, pid: u32, streams: &ProcessBuffers, buffers: &[Buffer]) {
    let words = streams.write_positions(pid, &worth_watching(call_sites, pid, buffers));
    call_sites.watch(pid, &words);
}

/// Returns the streams with pending bytes, those watched already, and buffered standard output: at most
/// [`MAX_WATCHED_STREAMS`], the most important first.
fn worth_watching<'a>(call_sites: &CallSites, pid: u32, buffers: &'a [Buffer]) -> Vec<&'a Buffer> {
    let pending = |one: &Buffer| one.pending_bytes > 0;
    let likely = |one: &Buffer| one.fd == 1 && one.mode != Some(Mode::None);
    let known = |one: &Buffer| call_sites.has(pid, one.address);
    let mut wanted: Vec<&Buffer> =
        buffers.iter().filter(|one| one.fd >= 0 && (pending(one) || likely(one) || known(one))).collect();
    wanted.sort_by_key(|one| std::cmp::Reverse((pending(one), known(one), one.pending_bytes)));
    wanted.truncate(MAX_WATCHED_STREAMS);
    wanted
}

impl std::fmt::Debug for BufferWatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BufferWatch").field("processes", &self.processes.len()).finish_non_exhaustive()
    }
}
