//! The supervisor's event loop: waits for stops and timers until the command has ended.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weir_model::run::RunOutcome;
use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
use weir_sys::held_signals;
use weir_sys::launch::GatedCommand;
use weir_sys::limits;
use weir_sys::memory::silent_processes;
use weir_sys::proc;
use weir_sys::ptrace::held_exit::HeldExit;
use weir_sys::ptrace::{self, PtraceStop};
use weir_sys::signals;

use super::SuperviseError;
use super::departure::Departure;
use super::handler::LifecycleHandler;
use super::other_tracers::PendingDetach;
use super::tracee::TracedProcess;
use super::tracees::Tracees;
use crate::delay::outside_streams::reclaim_to_leave;
use crate::foreign_file::late_writes;
use crate::rescue::save::RESCUED;

/// The retry interval for exits and forks that a handler defers and for stops of unknown threads: short for a user.
const RETRY_NS: u64 = 2_000_000;

/// The interval at which written-ahead bytes are reclaimed after the command's end. Each attempt stops a process.
const RECLAIM_NS: u64 = 20_000_000;

/// The interval at which weir looks whether a command has ended that another program traces: short for a user.
const ROOT_NS: u64 = 10_000_000;

/// How long weir continues to serve processes after the command's end, before it names them: the other processes of a pipeline
/// end at about the same time.
const GRACE_NS: u64 = 20_000_000;

/// How long weir waits for the end of killed processes: a little longer than a rescue waits for a reader.
const KILLED_GRACE_NS: u64 = 7_000_000_000;

/// The most processes that are named.
const MAX_NAMED: usize = 4;

/// An exit that a handler has deferred.
pub(crate) struct DeferredExit {
    pub pid: u32,
    pub tid: u32,
    pub status: i32,
    /// The index of the handler.
    pub handler: usize,
}

pub(crate) struct Supervisor {
    pub tracees: Tracees,
    pub handlers: Vec<Box<dyn LifecycleHandler + Send>>,
    /// The root process, until it has executed the command.
    pub gated: Option<GatedCommand>,
    pub deferred_exits: Vec<DeferredExit>,
    pub held_exits: Vec<HeldExit>,
    pub(super) detaches: Vec<PendingDetach>,
    /// The command's exit; None while it runs.
    pub exit: Option<Exit>,
    tick_interval: Option<Duration>,
    next_tick_ns: u64,
    /// The end of [`GRACE_NS`].
    grace_until_ns: Option<u64>,
    pub(super) departure: Option<Departure>,
    /// As process 1, weir has killed the processes that outlived the command.
    has_killed_the_rest: bool,
}

/// Supervises a command from its gate to its end.
pub(crate) fn run(
    gated: GatedCommand,
    handlers: Vec<Box<dyn LifecycleHandler + Send>>,
    save_in: Option<PathBuf>,
) -> Result<RunOutcome, SuperviseError> {
    let mut supervisor = Supervisor::new(gated.pid, handlers, save_in)?;
    supervisor.attach(gated)?;
    let handled = supervisor.handle_events();
    supervisor.each_handler(|handler, tracees| handler.on_end(tracees));
    handled?;
    if let Some(mut gated) = supervisor.gated.take() {
        // The child ended before its execve(2). Its answer holds the error.
        gated.wait_for_exec()?;
    }
    Ok(supervisor.outcome())
}

impl Supervisor {
    pub(crate) fn new(
        root: u32,
        handlers: Vec<Box<dyn LifecycleHandler + Send>>,
        save_in: Option<PathBuf>,
    ) -> Result<Supervisor, SuperviseError> {
        let tracees =
            Tracees::new(root, save_in).map_err(|error| SuperviseError::Refused(limits::no_timer(&error)))?;
        let tick_interval = handlers.iter().filter_map(|handler| handler.tick_interval()).min();
        Ok(Supervisor {
            tracees,
            handlers,
            gated: None,
            deferred_exits: Vec::new(),
            held_exits: Vec::new(),
            detaches: Vec::new(),
            exit: None,
            tick_interval,
            next_tick_ns: 0,
            grace_until_ns: None,
            departure: None,
            has_killed_the_rest: false,
        })
    }

    /// Attaches to the child at its gate, and opens the gate.
    pub(crate) fn attach(&mut self, mut gated: GatedCommand) -> Result<(), SuperviseError> {
        let pid = gated.pid;
        ptrace::seize(pid).map_err(|error| attach_error(pid, error))?;
        let mut process = TracedProcess::new(pid);
        process.before_exec = true;
        self.tracees.processes.insert(pid, process);
        self.add_thread(pid, pid);
        held_signals::begin();
        gated.open_gate()?;
        self.gated = Some(gated);
        self.next_tick_ns = self.tick_interval.map_or(0, |interval| now_ns() + interval.as_nanos() as u64);
        Ok(())
    }

    fn handle_events(&mut self) -> Result<(), SuperviseError> {
        while self.exit.is_none() || self.stays_for_bytes() || self.gives_grace() || self.stays_for_exits() {
            self.handle_timers();
            if let Some(stop) = self.tracees.deferred_stops.pop_front() {
                self.on_stop(stop);
                continue;
            }
            self.tracees.timer.set(self.next_timer_ns());
            match ptrace::wait() {
                Ok(Some(stop)) => self.on_stop(stop),
                Ok(None) => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                    if !self.has_detached_root() {
                        break;
                    }
                    std::thread::sleep(Duration::from_nanos(ROOT_NS));
                }
                Err(source) => {
                    let pid = self.tracees.root;
                    return Err(weir_sys::Error::Process { call: "waitpid", pid, source }.into());
                }
            }
        }
        Ok(())
    }

    /// Returns the services of the handlers, which end with the command.
    fn services(&self) -> Vec<&'static str> {
        self.handlers.iter().filter_map(|handler| handler.service()).collect()
    }

    /// Returns the end of the grace, which begins at the first call after the command's end.
    fn grace_until_ns(&mut self) -> u64 {
        *self.grace_until_ns.get_or_insert_with(|| now_ns() + GRACE_NS)
    }

    /// Returns whether processes run on after the command that may end by themselves in a moment, that are killed, or that weir has killed.
    pub(super) fn gives_grace(&mut self) -> bool {
        let until_ns = self.grace_until_ns();
        if self.services().is_empty() {
            return false;
        }
        let left = self.left_running();
        if now_ns() >= until_ns && !left.is_empty() && self.kills_the_rest() {
            for pid in left.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
                let _ended = kill_process(pid, Signal::KILL);
            }
            self.grace_until_ns = Some(now_ns() + KILLED_GRACE_NS);
            return true;
        }
        let most_ns = if self.has_killed_the_rest { until_ns } else { until_ns + KILLED_GRACE_NS };
        let now = now_ns();
        !left.is_empty() && (now < until_ns || now < most_ns && left.iter().any(|pid| self.is_ending(*pid)))
    }

    /// Returns whether a process is killed, or weir has not handled an exit stop of it yet: its bytes would be lost.
    fn is_ending(&self, pid: u32) -> bool {
        let is_exit =
            |tid: u32, stop: &PtraceStop| stop.tid == tid && stop.status >> 16 == libc::PTRACE_EVENT_EXIT;
        let has_deferred = |tid: u32| self.tracees.deferred_stops.iter().any(|stop| is_exit(tid, stop));
        let mut live = self.tracees.live_threads(pid);
        live.any(|tid| proc::is_killed(tid) || ptrace::has_exit_stop(tid) || has_deferred(tid))
    }

    /// Returns whether weir kills the rest now: the end of process 1 kills all processes of its PID namespace (pid_namespaces(7)),
    /// and then no process writes their pending bytes. False after the first time.
    fn kills_the_rest(&mut self) -> bool {
        let is_init = std::process::id() == 1 && self.services().contains(&RESCUED);
        is_init && !std::mem::replace(&mut self.has_killed_the_rest, true)
    }

    /// Returns the processes that have not ended.
    fn left_running(&self) -> Vec<u32> {
        let is_alive = |pid: &u32| self.tracees.live_thread(*pid).is_some_and(|tid| !proc::is_dead(tid));
        self.tracees.pids().into_iter().filter(is_alive).collect()
    }

    /// Returns a sentence about the processes that are no longer served; None if there are none.
    fn unserved_sentence(&self) -> Option<String> {
        let services = self.services();
        let mut pids = if services.is_empty() { Vec::new() } else { self.left_running() };
        pids.sort_unstable();
        let mut names: Vec<String> =
            pids.iter().take(MAX_NAMED).map(|pid| format!("{} (pid {pid})", proc::comm(*pid))).collect();
        if pids.len() > MAX_NAMED {
            names.push(format!("{} others", pids.len() - MAX_NAMED));
        }
        let (verb, whose) = if pids.len() == 1 { ("runs", "its") } else { ("run", "their") };
        let last = names.pop()?;
        let all = if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) };
        let services = services.join(" or ");
        Some(format!("{all} {verb} on after the command: {whose} pending bytes are no longer {services}"))
    }

    fn handle_timers(&mut self) {
        let now = now_ns();
        if !self.deferred_exits.is_empty() {
            self.retry_deferred_exits();
        }
        self.retry_held_exits();
        self.retry_deferred_forks();
        self.adopt_orphans();
        self.advance_detaches();
        if self.has_detached_root() && proc::has_ended(self.tracees.root) {
            signals::forget_command();
        }
        if self.has_detached_root()
            && let Some(status) = ptrace::try_reap_child(self.tracees.root)
        {
            self.exit = Some(Exit::of_status(status));
        }
        if self.exit.is_some() {
            self.tracees.is_leaving = now >= self.grace_until_ns();
            // A descendant is detached once no bytes are written ahead of it.
            let owners = self.tracees.written_ahead.owners();
            owners.into_iter().for_each(|pid| reclaim_to_leave(&mut self.tracees, pid));
        }
        if let Some(interval) = self.tick_interval.filter(|_| now >= self.next_tick_ns) {
            self.each_handler(|handler, tracees| handler.on_tick(tracees, now));
            self.next_tick_ns = next_tick_ns(now, now_ns(), interval);
        }
    }

    /// Returns the time of the next timer; 0 if there is none.
    fn next_timer_ns(&self) -> u64 {
        let retries = !self.deferred_exits.is_empty()
            || !self.held_exits.is_empty()
            || !self.tracees.deferred_forks.is_empty()
            || !self.detaches.is_empty()
            || !self.tracees.early_stops.is_empty();
        let retry = retries.then(|| now_ns() + RETRY_NS);
        let reclaim = self.exit.map(|_| now_ns() + RECLAIM_NS);
        let root = self.has_detached_root().then(|| now_ns() + ROOT_NS);
        let tick = self.tick_interval.map(|_| self.next_tick_ns);
        retry.into_iter().chain(reclaim).chain(root).chain(tick).min().unwrap_or(0)
    }

    /// Calls a method of every handler, in order.
    pub fn each_handler(&mut self, mut call: impl FnMut(&mut dyn LifecycleHandler, &mut Tracees)) {
        for handler in &mut self.handlers {
            call(handler.as_mut(), &mut self.tracees);
        }
    }

    /// Calls a method of the handlers from index `first` on, in order, until one returns false. Returns its index.
    pub fn first_deferring(
        &mut self,
        first: usize,
        mut call: impl FnMut(&mut dyn LifecycleHandler, &mut Tracees) -> bool,
    ) -> Option<usize> {
        let mut left = self.handlers.iter_mut().enumerate().skip(first);
        left.find_map(|(index, handler)| (!call(handler.as_mut(), &mut self.tracees)).then_some(index))
    }

    fn outcome(self) -> RunOutcome {
        let detached = self.tracees.detached_sentence();
        let unserved = self.unserved_sentence();
        let silent = silent_processes().into_iter().chain(late_writes::sentences()).chain(detached);
        let silent = silent.chain(unserved).chain(self.tracees.unlisted_sentences());
        RunOutcome {
            exit: self.exit.unwrap_or(Exit::Code(0)),
            rescued: self.tracees.rescued,
            emitted_bytes: self.tracees.written_ahead.total_bytes,
            limitations: self.tracees.limitations.into_iter().chain(silent).collect(),
        }
    }
}

fn attach_error(pid: u32, error: std::io::Error) -> SuperviseError {
    match proc::status(pid) {
        Some(status) if status.tracerpid > 0 => {
            let tracer = proc::label(status.tracerpid as u32);
            SuperviseError::Refused(format!(
                "{tracer} traces it already, and a process can have only one tracer"
            ))
        }
        _ => weir_sys::Error::Process { call: "ptrace(PTRACE_SEIZE)", pid, source: error }.into(),
    }
}

/// Returns the time of the next tick. A late tick is not repeated, and half of a tick's time is left for stops before the next
/// one: with thousands of processes a tick takes longer than the interval.
fn next_tick_ns(begun_ns: u64, ended_ns: u64, interval: Duration) -> u64 {
    let took_ns = ended_ns.saturating_sub(begun_ns);
    (begun_ns + interval.as_nanos() as u64).max(ended_ns + took_ns / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_tick_leaves_time_for_stops() {
        let next = |ended_ns| next_tick_ns(1_000, ended_ns, Duration::from_nanos(600));
        assert_eq!([next(1_100), next(1_400)], [1_600, 1_600]);
        assert_eq!([next(1_600), next(9_000)], [1_900, 13_000]);
    }
}
