//! The tracer thread: stops processes by ptrace(2) where the BPF programs cannot read their buffers.
//!
//! That is, processes whose buffers are not in glibc's list of FILEs (CPython, musl, stripped static programs). They are stopped at
//! fork, execve(2) and exit, and at the first writes of their first threads, when [`BufferSnapshots`] reads their memory.
//!
//! The command is stopped from its execve(2) until its breakpoints are set. Its children run already when that event arrives.

mod exit_stops;
mod go_stops;
mod image_checks;
mod threads;

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_model::trace::{Buffer, IN_VFORK, SnapshotMoment};
use weir_sys::clock::now_ns;
use weir_sys::ptrace::{self, PtraceStop, new_tid};
use weir_sys::{Error, executable, limits};
use weir_trace_api::breakpoint_traps::{self, BreakpointTraps, TrapKind};
use weir_trace_api::{BufferSnapshots, RawEvent, RawEventKind};
use weir_walkers::needs_stops;

use crate::command_start::{self, CommandStart};
use crate::exit_writes::ExitWrites;
use crate::go_exit_watch::GoExitWatches;
use crate::load::{ProcessMap, unusable};
use crate::tracer_requests::{FirstStop, TracerHandle, TracerRequest};
use crate::tracer_wakeup::{self, SigchldBlocked, TracerWakeup};

/// How often to look for a C library that a process is about to map: no event announces it.
const LIBRARY_POLL: Duration = Duration::from_millis(1);
/// How long to wait for a C library. A program that maps none within this time is most likely static.
const LIBRARY_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest wait if nothing is polled.
const IDLE: Duration = Duration::from_millis(200);

/// Runs `body` beside the tracer thread. When `body` returns, the thread detaches from all tracees and ends.
/// `processes` is the kernel's map. Fails without calling `body` if no thread can be started.
pub(super) fn run_beside<T>(
    snapshots: &mut dyn BufferSnapshots,
    processes: Option<ProcessMap>,
    body: impl FnOnce(&TracerHandle) -> T,
) -> Result<T, Error> {
    let wakeup = &TracerWakeup::new();
    thread::scope(|scope| {
        let ((requests, received), (sender, events)) = (channel(), channel());
        let tracer = Tracer {
            events: sender,
            snapshots,
            stopping_at_exec: None,
            tracees: HashMap::new(),
            executing: HashSet::new(),
            threads: HashMap::new(),
            awaiting_library: Vec::new(),
            command_start: CommandStart::default(),
            go_exit_watches: GoExitWatches::default(),
            processes,
            exit_writes: ExitWrites::default(),
            strangers: HashSet::new(),
            ended: HashSet::new(),
            ended_alone: HashSet::new(),
            launchers: HashSet::new(),
            ran_before: HashMap::new(),
            has_fork_watches: false,
            held: HashMap::new(),
        };
        thread::Builder::new()
            .spawn_scoped(scope, move || tracer.run(&received, wakeup))
            .map_err(|error| unusable(limits::no_thread(&error)))?;
        let _blocked = SigchldBlocked::block();
        Ok(body(&TracerHandle::new(requests, wakeup, events)))
    })
}

struct Tracer<'a> {
    events: Sender<RawEvent>,
    snapshots: &'a mut dyn BufferSnapshots,
    /// The command, until its first execve(2).
    stopping_at_exec: Option<u32>,
    /// The tracees by TID.
    tracees: HashMap<u32, BreakpointTraps>,
    /// Processes in which a thread other than the first is about to call execve(2).
    executing: HashSet<u32>,
    /// The process of each tracee that is not a first thread, including those that have exited.
    threads: HashMap<u32, u32>,
    /// Processes without a C library so far, and since when they are traced.
    awaiting_library: Vec<(u32, Instant)>,
    command_start: CommandStart,
    go_exit_watches: GoExitWatches,
    processes: Option<ProcessMap>,
    exit_writes: ExitWrites,
    /// Processes that have the PID of a traced process that has ended. They are detached at their next stop.
    strangers: HashSet<u32>,
    /// Tracees that have ended.
    ended: HashSet<u32>,
    /// Threads that have ended by their own exit(2) before others of their process, until that is reported.
    ended_alone: HashSet<u32>,
    /// Tracees that run the command's launcher (env, timeout …), and their children until their execve(2).
    launchers: HashSet<u32>,
    /// Tracees that ran before the trace, in their first image, and when all their threads were tracees (CLOCK_MONOTONIC).
    ran_before: HashMap<u32, u64>,
    /// Some threads are traced without exit stops, and so are the processes that they create, until their first stop.
    has_fork_watches: bool,
    /// New tracees in their first stop, which came before that of their creators, and since when.
    held: HashMap<u32, (PtraceStop, Instant)>,
}

impl Tracer<'_> {
    fn run(mut self, requests: &Receiver<TracerRequest>, wakeup: &TracerWakeup) {
        ptrace::raise_priority();
        tracer_wakeup::unblock_sigchld();
        loop {
            while let Some(stop) = ptrace::try_wait() {
                self.handle_stop(stop);
            }
            self.set_traps();
            self.resume_orphans();
            for pid in self.go_exit_watches.seize() {
                self.emit(pid, RawEventKind::Unstopped);
            }
            let is_idle = self.awaiting_library.is_empty() && self.held.is_empty();
            let interval = if is_idle { IDLE } else { LIBRARY_POLL };
            let interval = self.go_exit_watches.poll_interval().unwrap_or(interval);
            match requests.try_recv() {
                Ok(TracerRequest::CheckImage { pid, exe }) => self.check_image(pid, &exe),
                Ok(TracerRequest::CheckRunning { pid }) => self.check_running(pid),
                Ok(TracerRequest::CheckFork { pid, tid, ns }) => self.check_fork(pid, tid, ns),
                Ok(TracerRequest::FirstStop { pid, stop, answer }) => {
                    let _ = answer.send(self.expect_first_stop(pid, stop));
                }
                Ok(TracerRequest::Settle(answer)) => drop(answer.send(())),
                Err(TryRecvError::Empty) => wakeup.wait(interval),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    /// Takes the snapshot that belongs to a stop and resumes or detaches the tracee.
    fn handle_stop(&mut self, stop: PtraceStop) {
        let (pid, status) = (stop.tid, stop.status);
        if !libc::WIFSTOPPED(status) {
            return self.forget(pid);
        }
        let signal = libc::WSTOPSIG(status);
        if self.strangers.remove(&pid) {
            return ptrace::detach(pid, if status >> 16 == 0 { signal } else { 0 });
        }
        if let Some(process) = self.go_exit_watches.process_of(pid) {
            return self.handle_go_stop(pid, process, status);
        }
        match status >> 16 {
            libc::PTRACE_EVENT_CLONE if self.starts_go_watch(pid) => return,
            libc::PTRACE_EVENT_FORK => self.on_fork(pid, SnapshotMoment::Fork, ""),
            // The child shares the memory; the pending bytes belong to the parent.
            libc::PTRACE_EVENT_VFORK => self.on_fork(pid, SnapshotMoment::Sample, IN_VFORK),
            libc::PTRACE_EVENT_CLONE => self.on_clone(pid),
            libc::PTRACE_EVENT_EXEC if !self.on_exec(pid) => return ptrace::detach(pid, 0),
            libc::PTRACE_EVENT_EXIT => self.on_exit(pid),
            ptrace::EVENT_STOP if ptrace::is_job_control(signal) => return ptrace::listen(pid),
            ptrace::EVENT_STOP if self.go_exit_watches.is_other_thread(pid) => return ptrace::detach(pid, 0),
            ptrace::EVENT_STOP if !self.tracees.contains_key(&pid) => return self.hold(stop),
            ptrace::EVENT_STOP if self.has_fork_watches => ptrace::trace_lifecycle(pid),
            0 => return self.on_signal(pid, signal),
            _ => {}
        }
        self.resume(pid);
    }

    fn forget(&mut self, tid: u32) {
        self.strangers.remove(&tid);
        self.held.remove(&tid);
        if self.tracees.remove(&tid).is_some() {
            self.ended.insert(tid);
        }
        // The event of its execve(2) may be handled later.
        self.ended.extend(self.go_exit_watches.process_of(tid));
        self.go_exit_watches.remove(tid);
        self.forget_exit(tid);
        self.launchers.remove(&tid);
        self.ran_before.remove(&tid);
        self.command_start.remove(tid);
        self.threads.retain(|_, process| *process != tid);
    }

    fn resume(&mut self, pid: u32) {
        if self.command_start.take_reached(pid) {
            self.tracees.remove(&pid);
            ptrace::detach(pid, 0);
        } else {
            ptrace::resume(pid, false, 0);
        }
    }

    /// Attaches to the command. Returns whether it will stop.
    fn expect_first_stop(&mut self, pid: u32, stop: FirstStop) -> bool {
        match stop {
            FirstStop::Exec => {
                self.stopping_at_exec = self.seize(pid).then_some(pid);
                self.stopping_at_exec.is_some()
            }
            FirstStop::Library(processes) => {
                let seized = ptrace::seize_for_signals(pid).is_ok();
                if seized {
                    self.add_tracee(pid);
                    self.command_start.expect(pid, Some(*processes));
                }
                seized
            }
        }
    }

    /// Handles the stop at fork(2) or vfork(2). ptrace(2) attaches to the child automatically.
    fn on_fork(&mut self, pid: u32, moment: SnapshotMoment, blocked_in: &str) {
        if let Some(child) = new_tid(pid) {
            self.add_tracee(child);
            self.launchers.contains(&pid).then(|| self.launchers.insert(child));
        }
        self.snapshot_in(blocked_in, pid, moment, moment);
        self.resume_held(pid);
    }

    /// Adds a process. Discards what is known of an earlier process with the same PID.
    fn add_tracee(&mut self, pid: u32) {
        self.threads.remove(&pid);
        self.executing.remove(&pid);
        self.tracees.insert(pid, BreakpointTraps::none());
    }

    /// Handles a new image: the breakpoints and the other threads are gone. Returns false if the process needs no stop.
    fn on_exec(&mut self, pid: u32) -> bool {
        for (tid, _) in self.threads.extract_if(|_, process| *process == pid) {
            self.tracees.remove(&tid);
            self.ended.insert(tid);
        }
        ptrace::trace_lifecycle(pid); // the thread that called execve(2) may have had fewer stops
        self.executing.remove(&pid);
        self.ran_before.remove(&pid);
        self.exit_writes.forget(pid);
        self.ended_alone.remove(&pid);
        self.awaiting_library.retain(|(other, _)| *other != pid);
        let is_command = self.stopping_at_exec.take_if(|command| *command == pid).is_some();
        // A child of a debugger would be traced by weir, as all children of a tracee, and then not by the debugger.
        if executable::traces_others(pid) {
            self.tracees.remove(&pid);
            self.emit(pid, RawEventKind::Unstopped);
            return false;
        }
        self.tracees.insert(pid, BreakpointTraps::none());
        if self.go_exit_watches.on_exec(pid, &executable::link(pid)) {
            return true;
        }
        let is_launched = self.launchers.remove(&pid);
        let is_launcher = (is_command || is_launched) && command_start::runs_launcher(pid);
        is_launcher.then(|| self.launchers.insert(pid));
        if !needs_stops(&executable::link(pid)) {
            // Else its children would be traced too, which makes a shell's loop three times as slow.
            let is_unneeded = is_launched && !is_launcher;
            is_unneeded.then(|| self.tracees.remove(&pid));
            return !is_unneeded && self.stop_at_entry(pid, is_command && !is_launcher);
        }
        let traps = BreakpointTraps::set(pid).map(|traps| traps.with_entry(pid));
        match traps.or_else(|| BreakpointTraps::at_entry(pid)) {
            Some(traps) => drop(self.tracees.insert(pid, traps)),
            None => self.awaiting_library.push((pid, Instant::now())),
        }
        true
    }

    /// Sets a breakpoint at the entry point of a process that needs no other stop; the command is detached there. Returns false
    /// if the command cannot have that breakpoint.
    fn stop_at_entry(&mut self, pid: u32, is_command: bool) -> bool {
        match command_start::trap_at_entry(pid) {
            Some(traps) => {
                self.tracees.insert(pid, traps);
                if is_command {
                    self.command_start.expect(pid, None);
                }
            }
            None if is_command => drop(self.tracees.remove(&pid)),
            None => return true,
        }
        self.tracees.contains_key(&pid)
    }

    /// Handles the stop at the entry point: the C library is initialized and has not written, so breakpoints at its
    /// functions see every write.
    fn on_entry(&mut self, pid: u32) {
        // A CPU has four breakpoint registers: first free those of the present breakpoints.
        self.tracees.insert(pid, BreakpointTraps::none());
        let traps = if needs_stops(&executable::link(pid)) { BreakpointTraps::set(pid) } else { None };
        traps.map(|traps| self.tracees.insert(pid, traps));
        let _cached = self.snapshots.snapshot(pid, SnapshotMoment::Sample);
        self.command_start.reached(pid);
    }

    fn process_of(&self, tid: u32) -> u32 {
        self.threads.get(&tid).copied().unwrap_or(tid)
    }

    /// Passes a signal on, unless it comes from a breakpoint or the BPF program.
    fn on_signal(&mut self, pid: u32, signal: i32) {
        let event = if signal == breakpoint_traps::SIGNAL { ptrace::signal_fd(pid) } else { None };
        match event.and_then(|fd| self.tracees.get(&pid)?.kind_of(fd)) {
            Some(trap) => {
                self.on_trap(pid, trap);
                self.resume(pid);
            }
            None if signal == breakpoint_traps::SIGNAL && self.on_library_signal(pid) => {}
            None => ptrace::resume(pid, false, signal),
        }
    }

    /// Handles the BPF program's signal: the command's C library is relocated. The command is resumed as early as possible.
    /// Returns false for any other signal.
    fn on_library_signal(&mut self, pid: u32) -> bool {
        let list = self.command_start.stream_list(pid).filter(|_| ptrace::is_kernel_signal(pid));
        let Some(list) = list else { return false };
        self.snapshots.image_started(pid, list);
        self.command_start.reached(pid);
        self.resume(pid);
        self.snapshots.resumed(pid);
        true
    }

    fn on_trap(&mut self, pid: u32, trap: TrapKind) {
        let first = self.tracees.get_mut(&pid).is_some_and(|traps| traps.count_stop(trap));
        match self.process_of(pid) {
            process if process != pid && trap == TrapKind::Exec => self.executing.insert(process),
            process => self.executing.remove(&process),
        };
        match trap {
            TrapKind::Entry => self.on_entry(pid),
            TrapKind::Exec if first => self.snapshot(pid, SnapshotMoment::Exec, SnapshotMoment::Exec),
            TrapKind::Exec => self.snapshot(pid, SnapshotMoment::Exec, SnapshotMoment::Sample),
            TrapKind::Write => self.snapshot(pid, SnapshotMoment::Sample, SnapshotMoment::Sample),
        }
    }

    /// Sets the breakpoints of processes that have mapped their C library by now.
    fn set_traps(&mut self) {
        let tracees = &mut self.tracees;
        self.awaiting_library.retain(|&(pid, since)| {
            let Some(tracee) = tracees.get_mut(&pid) else { return false };
            match BreakpointTraps::set(pid) {
                Some(traps) => *tracee = traps,
                None => return since.elapsed() < LIBRARY_TIMEOUT,
            }
            false
        });
    }

    /// Sends a buffer snapshot of a thread's process, taken at `moment`. `search` decides how thoroughly streams are searched:
    /// as at that moment.
    fn snapshot(&mut self, tid: u32, moment: SnapshotMoment, search: SnapshotMoment) {
        self.snapshot_in("", tid, moment, search);
    }

    /// As [`Self::snapshot`], of a thread that blocks in the system call `blocked_in`.
    fn snapshot_in(&mut self, blocked_in: &str, tid: u32, moment: SnapshotMoment, search: SnapshotMoment) {
        let pid = self.process_of(tid);
        let buffers = self.snapshots.snapshot(pid, search);
        if !buffers.is_empty() {
            self.emit(pid, RawEventKind::buffers(pid, moment, buffers, blocked_in.into()));
        }
    }

    fn emit(&self, pid: u32, kind: RawEventKind) {
        let _run_ended = self.events.send(RawEvent { ns: now_ns(), pid, tid: pid, kind });
    }

    /// Sends the buffers of process `pid`, whose memory was read through `tid`.
    fn send(&self, pid: u32, tid: u32, moment: SnapshotMoment, buffers: Vec<Buffer>) {
        if !buffers.is_empty() {
            self.emit(pid, RawEventKind::buffers(tid, moment, buffers, String::new()));
        }
    }
}
