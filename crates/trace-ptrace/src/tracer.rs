//! The tracer: whom it has, and its loop.

use std::collections::{BTreeSet, HashMap, HashSet};

use weir_model::trace::{Buffer, Exit, IoTotals};
use weir_sys::Error;
use weir_sys::clock::now_ns;
use weir_sys::launch::GatedCommand;
use weir_sys::proc::{self, ResourceUsage, ThreadState};
use weir_sys::ptrace::timer::WaitTimer;
use weir_sys::ptrace::{self, PtraceStop};
use weir_trace_api::breakpoint_traps::BreakpointTraps;
use weir_trace_api::{BackendReport, RawEvent, RawEventKind, TraceHooks, TraceOptions, TraceRoot};

use super::{not_started, unusable};
use crate::io_account::IoAccount;
use crate::overhead_budget::{ProcessBudget, SharedBudget, StopCost};
use crate::scheduling_delay::SchedulingDelay;
use crate::syscalls::EnteredCall;

/// How often the caller gets its turn.
const TICK_NS: u64 = 100_000_000;

/// How long a child may wait for the event that says whose it is.
const EARLY_NS: u64 = 20_000_000;

/// How long the end waits for threads that were asked to stop; on a busy machine they may have to wait for a processor.
const CLOSING_NS: u64 = 3_000_000_000;

/// A thread that is traced.
#[derive(Debug, Default)]
pub(super) struct TracedThread {
    /// Its process.
    pub pid: u32,
    /// It was let go towards its next system call stop.
    pub watched: bool,
    /// Between a call's entry and its exit.
    pub inside: Option<EnteredCall>,
    /// It has stopped at a call's entry and not at its exit yet.
    pub in_call: bool,
    /// It will stop because it was asked to.
    pub interrupted: bool,
    /// Calls until it may be interrupted while it runs: it made one lately that must not be.
    pub shy_calls: u32,
    /// Writes of up to so many bytes to this descriptor are never broken off.
    pub whole_writes: Option<(u64, u64)>,
    /// When it was last let go.
    pub let_go_ns: u64,
    /// When its last counted call returned, while it was watched without a break.
    pub returned_ns: Option<u64>,
    /// It has begun to end, with this status.
    pub ending: Option<i32>,
    /// The counts at the entry of execve(2), to leave out what the kernel reads for it.
    pub before_exec: Option<IoTotals>,
    /// Write calls that its buffers were looked at before.
    pub looked_before: u32,
    /// Times that it lent its memory to a child, and its buffers were looked at with a search.
    pub lent: u32,
    /// A thread that is to be let go for good at its next stop, for this one, which wants to trace it.
    pub let_go_for: Option<u32>,
}

/// A process that is traced.
#[derive(Debug)]
pub(super) struct TracedProcess {
    pub parent: Option<u32>,
    pub threads: HashSet<u32>,
    /// It has had more than one thread.
    pub threaded: bool,
    /// Since when its calls are not seen.
    pub gap: Option<u64>,
    /// Since when what is not seen of it was not reported, where some threads are watched and others not.
    pub partly_since: u64,
    pub budget: ProcessBudget,
    /// What a counted call took, with all that the program did for it, when nobody watched.
    pub bare_ns: Option<f64>,
    pub account: IoAccount,
    /// What has been reported of it, by calls and by gaps.
    pub told: IoTotals,
    /// Its calls are of another architecture, and never seen.
    pub foreign: bool,
    /// It has not become the command yet: nothing of it is reported.
    pub hidden: bool,
    /// When to try again to catch it, and how long the next wait is.
    pub try_at: u64,
    pub try_ns: u64,
    /// When it was first seen.
    pub began_ns: u64,
    /// A trap where its own code begins, until it comes there.
    pub entry: Option<BreakpointTraps>,
    /// What was told of its buffers before its calls, where that is asked for.
    pub told_buffers: Vec<Buffer>,
    /// Files that it was seen to open since its last gap, and whether there were several before this one.
    pub openings: u32,
    pub opens: bool,
    pub unwatched_ns: u64,
    /// Known at its end: its counts, what it needed.
    pub last: Option<(Option<IoTotals>, ResourceUsage)>,
}

impl TracedProcess {
    /// Whether its calls are not to be seen now.
    pub(super) fn unseen(&self) -> bool {
        self.gap.is_some() || self.foreign || self.hidden
    }

    pub(super) fn new(parent: Option<u32>, now: u64) -> Self {
        Self {
            parent,
            threads: HashSet::new(),
            threaded: false,
            gap: None,
            partly_since: now,
            budget: ProcessBudget::new(now),
            bare_ns: None,
            account: IoAccount::default(),
            told: IoTotals::default(),
            foreign: false,
            hidden: false,
            try_at: 0,
            try_ns: crate::sampling_gaps::TRY_NS,
            began_ns: now,
            entry: None,
            told_buffers: Vec::new(),
            openings: 0,
            opens: false,
            unwatched_ns: 0,
            last: None,
        }
    }
}

pub(super) struct Tracer<'h, 'c> {
    pub hooks: TraceHooks<'h, 'c>,
    pub options: &'h TraceOptions,
    pub root: u32,
    pub attached: bool,
    /// Its programs have a seccomp filter, which stops them at calls; see [`crate::seccomp_stops`].
    pub filtered: bool,
    /// The root, until it has become the command.
    pub gated: Option<GatedCommand>,
    pub threads: HashMap<u32, TracedThread>,
    pub processes: HashMap<u32, TracedProcess>,
    /// Stopped before it was known whose they are, and since when.
    pub early: HashMap<u32, (PtraceStop, u64)>,
    pub stop_cost: StopCost,
    pub purse: SharedBudget,
    pub delay: SchedulingDelay,
    /// What the tracer had of a processor when it saw the stop that it handles, if that is what the stop costs.
    pub had_ns: Option<u64>,
    /// When those that open files are glanced at again.
    pub glance_at: u64,
    pub exit: Option<Exit>,
    pub root_gone: bool,
    pub blind: BTreeSet<String>,
    pub seen_calls: u64,
    pub watched_ns: u64,
    pub unwatched_ns: u64,
    /// Since when it is to end.
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
        let timer = WaitTimer::new().map_err(|error| unusable(&format!("timer_create: {error}")))?;
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
            stop_cost: StopCost::default(),
            purse: SharedBudget::new(now_ns()),
            delay: SchedulingDelay::new(),
            had_ns: None,
            glance_at: 0,
            exit: None,
            root_gone: false,
            blind: BTreeSet::new(),
            seen_calls: 0,
            watched_ns: 0,
            unwatched_ns: 0,
            closing_since: None,
            timer,
            tick_at: 0,
        })
    }

    /// All of it, from the first look to the last.
    pub(super) fn run(mut self, target: TraceRoot) -> Result<BackendReport, Error> {
        let began = now_ns();
        match target {
            TraceRoot::Command(gated) => self.take_command(gated)?,
            TraceRoot::Process(pid) => self.take_process(pid)?,
        }
        let limit =
            self.options.limit.map_or(u64::MAX, |limit| began.saturating_add(limit.as_nanos() as u64));
        self.tick_at = began + TICK_NS;
        self.watch(limit)?;
        if self.root_gone
            && let Some(gated) = self.gated.take()
        {
            return Err(not_started(gated));
        }
        Ok(self.finish())
    }

    fn watch(&mut self, limit: u64) -> Result<(), Error> {
        let mut due = 0;
        loop {
            let now = now_ns();
            if now >= due {
                self.on_time(now);
                due = self.next_due(now).min(limit.max(now + 200_000));
                self.timer.set(due);
            }
            let stopped = self.attached && self.options.stop.load(std::sync::atomic::Ordering::Relaxed);
            if (stopped || now >= limit) && !self.closing() {
                self.close(now);
            }
            // Filtered programs are held until the last of them has ended: see ECHILD.
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
                // Nobody is left: the last filtered one has ended, or the root was let go to a tracer of its own.
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(source) => return Err(Error::Process { call: "waitpid", pid: self.root, source }),
            }
        }
    }

    pub(super) fn closing(&self) -> bool {
        self.closing_since.is_some()
    }

    /// Begins to end: threads that are let go from now on run unwatched, and those that run are asked to stop
    /// once more for that.
    fn close(&mut self, now: u64) {
        if self.closing_since.replace(now).is_none() {
            for (tid, thread) in &mut self.threads {
                if at_large(thread) && proc::thread_state(*tid) == ThreadState::Running {
                    thread.interrupted = ptrace::interrupt(*tid).is_ok();
                }
            }
        }
    }

    /// Whether watching is over and it does no harm that the kernel detaches the tracees: it wakes those that
    /// are stopped like a signal does, which at the entry of some calls ends them with EINTR.
    fn closed(&self, now: u64) -> bool {
        let settled = || !self.threads.values().any(|thread| thread.interrupted || at_large(thread));
        self.closing_since.is_some_and(|since| settled() || now >= since + CLOSING_NS)
    }

    /// What is to be done at times, not at stops.
    fn on_time(&mut self, now: u64) {
        if now >= self.tick_at && !self.closing() {
            self.tick_at = now + TICK_NS;
            self.tell_partly_unwatched(now);
            (self.hooks.tick)(now, self.hooks.sink);
        }
        let old = |early: &(PtraceStop, u64)| now >= early.1 + EARLY_NS;
        let lost: Vec<u32> = self.early.iter().filter(|entry| old(entry.1)).map(|entry| *entry.0).collect();
        for child in lost {
            self.adopt(child);
        }
        if !self.closing() {
            self.catch_those_ready(now);
            self.glance(now);
        }
    }

    fn next_due(&self, now: u64) -> u64 {
        let early = self.early.values().map(|early| early.1 + EARLY_NS);
        let catches = self.processes.values().filter_map(|process| self.wake_at(process));
        early.chain(catches).chain([self.tick_at]).min().unwrap_or(self.tick_at).max(now + 200_000)
    }

    /// Tells of those that live on, and lets them go by ending.
    fn finish(mut self) -> BackendReport {
        let now = now_ns();
        let living: Vec<u32> = self.processes.keys().copied().collect();
        for pid in living {
            self.end_gap(pid, now);
            self.tell_rest(pid, now);
            self.sum_up(pid, now);
        }
        BackendReport {
            exit: self.exit,
            blind_spots: self.blind.into_iter().collect(),
            observed_calls: self.seen_calls,
            observed_ns: self.watched_ns,
            gap_ns: self.unwatched_ns,
            ..BackendReport::default()
        }
    }

    /// Adds a process's times to those of all.
    pub(super) fn sum_up(&mut self, pid: u32, now: u64) {
        if let Some(process) = self.processes.get(&pid).filter(|process| !process.hidden) {
            let lived = now.saturating_sub(process.began_ns);
            self.unwatched_ns += process.unwatched_ns;
            self.watched_ns += lived.saturating_sub(process.unwatched_ns);
        }
    }

    /// Reports, unless it is of a child that has not become the command yet.
    pub(super) fn tell(&mut self, ns: u64, pid: u32, tid: u32, kind: RawEventKind) {
        if self.processes.get(&pid).is_none_or(|process| !process.hidden) {
            (self.hooks.sink)(RawEvent { ns, pid, tid, kind });
        }
    }
}

/// Whether its next stop may be the entry of a call.
fn at_large(thread: &TracedThread) -> bool {
    thread.watched && !thread.in_call && !thread.interrupted && thread.ending.is_none()
}
