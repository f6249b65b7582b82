//! The tracer: its tracees and its event loop.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use weir_model::trace::{Buffer, Exit, IoTotals};
use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::launch::GatedCommand;
use weir_sys::proc::{self, ResourceUsage, ThreadState};
use weir_sys::ptrace::held_exit::HeldExit;
use weir_sys::ptrace::last_write::LastWrite;
use weir_sys::ptrace::repeat::RepeatedCall;
use weir_sys::ptrace::timer::WaitTimer;
use weir_sys::ptrace::{self, PtraceStop};
use weir_sys::{Error, limits, unkillable};
use weir_trace_api::breakpoint_traps::BreakpointTraps;
use weir_trace_api::{BackendReport, RawEvent, RawEventKind, TraceHooks, TraceOptions, TraceRoot};

use super::held_exits::RETRY_NS;
use super::{not_started, unusable};
use crate::blocked_time::{AheadOfDelay, StopDelay};
use crate::io_account::IoAccount;
use crate::overhead_budget::{ProcessBudget, SharedBudget, StopCost};
use crate::scheduling_delay::SchedulingDelay;
use crate::syscalls::EnteredCall;

/// The interval of [`TraceHooks::tick`].
const TICK_NS: u64 = 100_000_000;

/// The time that a stopped child may wait for its parent's clone stop. Normally the two stops are microseconds apart.
const EARLY_STOP_NS: u64 = 20_000_000;

/// The longest wait for requested stops at the end. On a busy machine, threads wait for a processor before they stop.
const MAX_CLOSING_NS: u64 = 3_000_000_000;

/// As [`MAX_CLOSING_NS`], if weir ends before a command that no signal ends: such a thread does not stop.
const MAX_LEAVING_NS: u64 = 200_000_000;

/// A thread of a traced process.
#[derive(Debug, Default)]
pub(super) struct PtracedThread {
    pub pid: u32,
    /// The thread was resumed to its next syscall stop.
    pub syscall_stops: bool,
    /// The recorded call between its entry and its exit.
    pub inside: Option<EnteredCall>,
    /// The last syscall stop was an entry.
    pub in_call: bool,
    /// A stop was requested (PTRACE_INTERRUPT).
    pub interrupted: bool,
    /// The number of calls in which the thread is not interrupted while it runs, because it made a fragile one lately.
    pub fragile_calls: u32,
    pub repeated_call: RepeatedCall,
    /// Descriptor and size: writes of up to this size are never cut short by a stop.
    pub atomic_writes: Option<(u64, u64)>,
    /// When the thread was last resumed; 0: never.
    pub resumed_ns: u64,
    /// It was resumed to the entry or exit of its next call.
    pub to_syscall: bool,
    /// The CPU time of its process at its last stop; 0: unknown.
    pub cpu_ns: u64,
    /// The CPU time of its process from its last resumption to its current stop.
    pub resumed_cpu_ns: Option<u64>,
    pub ahead: AheadOfDelay,
    /// When its last counted call in this sampling window returned.
    pub returned_ns: Option<u64>,
    /// The exit status, after the exit stop.
    pub ending: Option<i32>,
    /// The I/O counters at the entry of execve(2), to exclude the kernel's reads of the executable.
    pub before_exec: Option<IoTotals>,
    /// Write calls that a buffer snapshot preceded, at most [`super::stops::FIRST_WRITES`].
    pub first_writes: u32,
    /// Calls of vfork(2) with a buffer snapshot that searched for the runtime.
    pub vforks: u32,
    /// The thread that wants to trace this one, which is detached at its next stop.
    pub detach_for: Option<u32>,
}

/// A traced process in its current image.
#[derive(Debug)]
pub(super) struct PtracedProcess {
    pub parent: Option<u32>,
    pub threads: HashSet<u32>,
    /// The process has had more than one thread in this image.
    pub threaded: bool,
    /// The start of the current gap.
    pub gap: Option<u64>,
    /// The time up to which the I/O of untraced threads was emitted, while others are sampled.
    pub reported_until: u64,
    pub budget: ProcessBudget,
    /// The mean time per counted call in the last gap, including the program's own work.
    pub gap_call_ns: Option<f64>,
    pub account: IoAccount,
    /// The I/O counters that were emitted, by calls and by gaps.
    pub reported: IoTotals,
    /// The program is for another architecture, so its calls are never recorded.
    pub foreign: bool,
    /// The gated child has not become the command yet: nothing is emitted.
    pub hidden: bool,
    /// The earliest next attempt to interrupt the process, and the delay after that.
    pub retry_at: u64,
    pub retry_ns: u64,
    /// When tracing of the process began.
    pub began_ns: u64,
    /// The breakpoint at the entry point, until the process reaches it.
    pub entry: Option<BreakpointTraps>,
    /// The last emitted snapshot before a call.
    pub emitted_buffers: Vec<Buffer>,
    /// Files opened in this sampling window.
    pub opened_files: u32,
    /// The process opened many files in its last sampling window.
    pub opens_many: bool,
    pub gap_ns: u64,
    /// The last writes of the threads that have exited in this image.
    pub last_writes: Vec<LastWrite>,
    /// I/O counters and resource usage at the exit stop of the last thread.
    pub final_counters: Option<(Option<IoTotals>, ResourceUsage)>,
}

impl PtracedProcess {
    /// Returns whether the calls of the process are not recorded now.
    pub(super) fn is_unobserved(&self) -> bool {
        self.gap.is_some() || self.foreign || self.hidden
    }

    /// Returns a process without threads whose first sampling window starts now.
    pub(super) fn new(parent: Option<u32>, now: u64) -> Self {
        Self {
            parent,
            threads: HashSet::new(),
            threaded: false,
            gap: None,
            reported_until: now,
            budget: ProcessBudget::new(now),
            gap_call_ns: None,
            account: IoAccount::default(),
            reported: IoTotals::default(),
            foreign: false,
            hidden: false,
            retry_at: 0,
            retry_ns: crate::sampling_gaps::FIRST_RETRY_NS,
            began_ns: now,
            entry: None,
            emitted_buffers: Vec::new(),
            opened_files: 0,
            opens_many: false,
            gap_ns: 0,
            last_writes: Vec::new(),
            final_counters: None,
        }
    }
}

/// The interval at which the tracer checks whether a detached command has ended, if it traces no other process.
const DETACHED_ROOT_POLL: Duration = Duration::from_millis(10);

/// The state of the tracer thread.
pub(super) struct Tracer<'h, 'c> {
    pub hooks: TraceHooks<'h, 'c>,
    pub options: &'h TraceOptions,
    pub root: u32,
    /// The root was running before; it is not a command.
    pub attached: bool,
    /// The command has a seccomp filter that stops its calls: see [`crate::seccomp_stops`].
    pub filtered: bool,
    /// The gated child, until it has become the command.
    pub gated: Option<GatedCommand>,
    pub threads: HashMap<u32, PtracedThread>,
    pub processes: HashMap<u32, PtracedProcess>,
    /// Stops of children whose parent's clone stop was not received yet, by thread ID, with their time.
    pub early: HashMap<u32, (PtraceStop, u64)>,
    pub held_exits: Vec<HeldExit>,
    pub stop_cost: StopCost,
    /// The time of the context switches of all stops, nanoseconds.
    pub switches_ns: f64,
    pub stop_delay: StopDelay,
    pub shared_budget: SharedBudget,
    pub delay: SchedulingDelay,
    /// The tracer's CPU time when it received the current stop, if the stop is charged by CPU time.
    pub cpu_at_stop_ns: Option<u64>,
    /// The time of the next fd snapshots.
    pub fd_snapshot_at: u64,
    pub exit: Option<Exit>,
    pub root_gone: bool,
    /// The command was detached for another tracer: no stop shows its end.
    pub root_detached: bool,
    pub blind_spots: BTreeSet<String>,
    pub remarks: BTreeSet<String>,
    pub observed_calls: u64,
    pub observed_ns: u64,
    pub gap_ns: u64,
    /// When the tracer began to detach.
    closing_since: Option<u64>,
    timer: WaitTimer,
    tick_at: u64,
}

impl<'h, 'c> Tracer<'h, 'c> {
    pub(super) fn new(
        root: u32,
        options: &'h TraceOptions,
        hooks: TraceHooks<'h, 'c>,
    ) -> Result<Self, Error> {
        let timer = WaitTimer::new().map_err(|error| unusable(&limits::no_timer(&error)))?;
        Ok(Self {
            hooks,
            options,
            root,
            attached: false,
            filtered: false,
            gated: None,
            threads: HashMap::new(),
            processes: HashMap::new(),
            early: HashMap::new(),
            held_exits: Vec::new(),
            stop_cost: StopCost::default(),
            switches_ns: 0.0,
            stop_delay: StopDelay::default(),
            shared_budget: SharedBudget::new(now_ns()),
            delay: SchedulingDelay::new(),
            cpu_at_stop_ns: None,
            fd_snapshot_at: 0,
            exit: None,
            root_gone: false,
            root_detached: false,
            blind_spots: BTreeSet::new(),
            remarks: BTreeSet::new(),
            observed_calls: 0,
            observed_ns: 0,
            gap_ns: 0,
            closing_since: None,
            timer,
            tick_at: 0,
        })
    }

    /// Attaches to the root, runs the event loop, and returns the report.
    pub(super) fn run(mut self, target: TraceRoot) -> Result<BackendReport, Error> {
        let began = now_ns();
        match target {
            TraceRoot::Command(gated) => self.attach_command(gated)?,
            TraceRoot::Process(process) => self.attach_process(process)?,
        }
        let limit =
            self.options.limit.map_or(u64::MAX, |limit| began.saturating_add(limit.as_nanos() as u64));
        self.tick_at = began + TICK_NS;
        self.run_loop(limit)?;
        if self.root_gone
            && let Some(gated) = self.gated.take()
        {
            return Err(not_started(gated));
        }
        Ok(self.finish())
    }

    /// Handles stops and timers until the trace ends or `limit` passes.
    fn run_loop(&mut self, limit: u64) -> Result<(), Error> {
        let mut due = 0;
        loop {
            let now = now_ns();
            if now >= due {
                self.on_timer(now);
                due = self.next_due(now).min(limit.max(now + 200_000));
                self.timer.set(due);
            }
            let asked = self.attached && self.options.stop.load(std::sync::atomic::Ordering::Relaxed);
            let stopped = asked || unkillable::leaving().is_some();
            if (stopped || now >= limit) && !self.closing() {
                self.close(now);
            }
            // Filtered processes are traced until the last of them has ended, which waitpid(2) reports with ECHILD.
            if self.root_gone && !self.filtered || self.closed(now) {
                return Ok(());
            }
            match ptrace::wait() {
                Ok(Some(stop)) => {
                    if let Some(sooner) = self.on_stop(stop) {
                        due = due.min(sooner);
                        self.timer.set(due);
                    }
                }
                Ok(None) => {}
                // No tracees: the last filtered process has ended, or the root was detached for another tracer.
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                    if !self.root_detached || self.root_gone {
                        return Ok(());
                    }
                    std::thread::sleep(DETACHED_ROOT_POLL);
                }
                Err(source) => return Err(Error::Process { call: "waitpid", pid: self.root, source }),
            }
        }
    }

    /// Returns whether the tracer has begun to detach.
    pub(super) fn closing(&self) -> bool {
        self.closing_since.is_some()
    }

    /// Begins to detach: threads are resumed without syscall stops from now on, and running ones are interrupted once for
    /// that.
    fn close(&mut self, now: u64) {
        if self.closing_since.replace(now).is_none() {
            for (tid, thread) in &mut self.threads {
                if may_enter_call(thread) && proc::thread_state(*tid) == ThreadState::Running {
                    thread.interrupted = ptrace::interrupt(*tid).is_ok();
                }
            }
        }
    }

    /// Returns whether the tracer thread may end. When the kernel detaches a stopped tracee, it wakes it like a signal, and
    /// at the entry of some calls that causes EINTR. So no thread may be about to stop there.
    fn closed(&self, now: u64) -> bool {
        let settled = || !self.threads.values().any(|thread| thread.interrupted || may_enter_call(thread));
        let most_ns = if unkillable::leaving().is_some() { MAX_LEAVING_NS } else { MAX_CLOSING_NS };
        self.closing_since.is_some_and(|since| settled() || now >= since + most_ns)
    }

    /// Does the work that is due by time: ticks, early stops, the end of gaps, fd snapshots.
    fn on_timer(&mut self, now: u64) {
        self.reap_detached_root();
        self.retry_held_exits();
        if now >= self.tick_at && !self.closing() {
            self.tick_at = now + TICK_NS;
            self.emit_untraced_threads(now);
            (self.hooks.tick)(now, self.hooks.sink);
        }
        let is_old = |early: &(PtraceStop, u64)| now >= early.1 + EARLY_STOP_NS;
        let orphans: Vec<u32> =
            self.early.iter().filter(|entry| is_old(entry.1)).map(|entry| *entry.0).collect();
        for child in orphans {
            self.add_orphan(child);
        }
        if !self.closing() {
            self.catch_due(now);
            self.snapshot_fds(now);
        }
    }

    /// Returns the time of the next [`Tracer::on_timer`].
    fn next_due(&self, now: u64) -> u64 {
        let early = self.early.values().map(|early| early.1 + EARLY_STOP_NS);
        let catches = self.processes.values().filter_map(|process| self.next_due_at(process));
        let held = self.held_exits.first().map(|_| now + RETRY_NS);
        early
            .chain(catches)
            .chain(held)
            .chain([self.tick_at])
            .min()
            .unwrap_or(self.tick_at)
            .max(now + 200_000)
    }

    /// Emits the final totals of the processes that still run and returns the report.
    fn finish(mut self) -> BackendReport {
        let now = now_ns();
        let running: Vec<u32> = self.processes.keys().copied().collect();
        for pid in running {
            self.note_never_stopped(pid);
            self.end_gap(pid, now);
            self.emit_uncounted(pid, now);
            self.emit_final_totals(pid, now);
            self.add_times(pid, now);
        }
        BackendReport {
            exit: self.exit,
            blind_spots: self.blind_spots.into_iter().collect(),
            remarks: self.remarks.into_iter().collect(),
            observed_calls: self.observed_calls,
            observed_ns: self.observed_ns,
            gap_ns: self.gap_ns,
            // The tracees wait while the tracer works, except for its few ticks.
            stopped_ns: self.switches_ns as u64 + thread_cpu_ns(),
            ..BackendReport::default()
        }
    }

    /// Adds the observed time and the gaps of a process to the sums of the report.
    pub(super) fn add_times(&mut self, pid: u32, now: u64) {
        if let Some(process) = self.processes.get(&pid).filter(|process| !process.hidden) {
            let lived = now.saturating_sub(process.began_ns);
            self.gap_ns += process.gap_ns;
            self.observed_ns += lived.saturating_sub(process.gap_ns);
        }
    }

    /// Emits an event, unless it belongs to the gated child that has not become the command yet.
    pub(super) fn emit(&mut self, ns: u64, pid: u32, tid: u32, kind: RawEventKind) {
        if self.processes.get(&pid).is_none_or(|process| !process.hidden) {
            (self.hooks.sink)(RawEvent { ns, pid, tid, kind });
        }
    }
}

/// Returns whether the next stop of a thread may be the entry of a call.
fn may_enter_call(thread: &PtracedThread) -> bool {
    thread.syscall_stops && !thread.in_call && !thread.interrupted && thread.ending.is_none()
}
