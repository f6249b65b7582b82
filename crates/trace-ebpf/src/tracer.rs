//! Stops for what a program in the kernel cannot walk: processes whose buffers are not glibc's FILE in plain
//! sight (CPython, musl, stripped static programs) are stopped for an instant when they fork, execute or end, and
//! at the first writes of their first threads, and their memory is read from here. They are not traced at their
//! other calls.
//!
//! The command itself is held from its execve(2) until its traps are set, so that none of its writes is early. What
//! others start is told of by the kernel when it runs already.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_model::trace::SnapshotMoment;
use weir_sys::clock::now_ns;
use weir_sys::proc;
use weir_sys::ptrace::{self, PtraceStop};
use weir_trace_api::breakpoint_traps::{self, BreakpointTraps, TrapKind};
use weir_trace_api::{BufferSnapshots, RawEvent, RawEventKind};
use weir_walkers::needs_stops;

use crate::command_start::{self, CommandStart};
use crate::go_exit_watch::{self, GoExitWatches};
use crate::tracer_requests::{FirstStop, TracerHandle, TracerRequest};
use crate::tracer_wakeup::{self, SigchldBlocked, TracerWakeup};

/// How often to look for what nobody tells of: a C library that is mapped, a thread that is started.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a C library is awaited.
const LIBRARY: Duration = Duration::from_secs(1);
/// The same while nothing of the kind is awaited.
const IDLE: Duration = Duration::from_millis(200);

/// So many threads of a process are stopped at their beginning, their first writes and their end.
const THREADS: usize = 8;

/// Runs `body` beside the tracing thread, which ends, and so lets everybody go, when `body` has.
pub(super) fn beside<T>(snapshots: &mut dyn BufferSnapshots, body: impl FnOnce(&TracerHandle) -> T) -> T {
    let bell = &TracerWakeup::new();
    thread::scope(|scope| {
        let (orders, todo) = channel();
        let (done, reports) = channel();
        let (traced, threads, awaited) = (HashMap::new(), HashMap::new(), Vec::new());
        let (executing, passing, lookouts) =
            (HashSet::new(), CommandStart::default(), GoExitWatches::default());
        let tracer = Tracer {
            reports: done,
            snapshots,
            held: None,
            traced,
            executing,
            threads,
            awaited,
            passing,
            lookouts,
        };
        scope.spawn(move || tracer.run(&todo, bell));
        let _deaf = SigchldBlocked::now();
        body(&TracerHandle::new(orders, bell, reports))
    })
}

struct Tracer<'a> {
    reports: Sender<RawEvent>,
    snapshots: &'a mut dyn BufferSnapshots,
    /// Who has not executed its first program yet.
    held: Option<u32>,
    /// Whom this thread traces: main threads by the process, and others.
    traced: HashMap<u32, BreakpointTraps>,
    /// Processes of which another thread than the main one is about to execute something.
    executing: HashSet<u32>,
    /// Of the others, whose they are; those that have ended are counted among its first too.
    threads: HashMap<u32, u32>,
    /// Whose C library is awaited, since when.
    awaited: Vec<(u32, Instant)>,
    /// The command, if it is let go where its own code begins.
    passing: CommandStart,
    /// Of Go programs.
    lookouts: GoExitWatches,
}

impl Tracer<'_> {
    fn run(mut self, todo: &Receiver<TracerRequest>, bell: &TracerWakeup) {
        ptrace::raise_priority();
        tracer_wakeup::listen();
        loop {
            while let Some(stop) = ptrace::try_wait() {
                self.pass(stop);
            }
            self.set_traps();
            self.lookouts.seize();
            let patience = if self.awaited.is_empty() { IDLE } else { PATIENCE };
            let patience = self.lookouts.patience().unwrap_or(patience);
            match todo.try_recv() {
                Ok(TracerRequest::Consider(pid, exe)) => self.attach(pid, &exe),
                Ok(TracerRequest::FirstStop(pid, how, done)) => {
                    let _ = done.send(self.holds(pid, how));
                }
                Err(TryRecvError::Empty) => bell.wait(patience),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    /// Looks where it is worth it, and lets the process go on in any case.
    fn pass(&mut self, stop: PtraceStop) {
        let (pid, status) = (stop.tid, stop.status);
        if !libc::WIFSTOPPED(status) {
            self.traced.remove(&pid);
            self.lookouts.remove(pid);
            self.passing.remove(pid);
            self.threads.retain(|_, of| *of != pid);
            return;
        }
        let signal = libc::WSTOPSIG(status);
        if let Some(process) = self.lookouts.of(pid) {
            return self.go_exit_watch(pid, process, status);
        }
        match status >> 16 {
            libc::PTRACE_EVENT_CLONE if self.founds(pid) => return,
            libc::PTRACE_EVENT_FORK => self.forks(pid, SnapshotMoment::Fork),
            // The child has this very memory, and what is in it is this one's.
            libc::PTRACE_EVENT_VFORK => self.forks(pid, SnapshotMoment::Sample),
            libc::PTRACE_EVENT_CLONE => self.clones(pid),
            libc::PTRACE_EVENT_EXEC if !self.executes(pid) => return ptrace::detach(pid, 0),
            libc::PTRACE_EVENT_EXIT => self.ends(pid),
            ptrace::EVENT_STOP if is_job_control(signal) => return ptrace::listen(pid),
            ptrace::EVENT_STOP if self.lookouts.has_strayed(pid) => return ptrace::detach(pid, 0),
            0 => return self.signal(pid, signal),
            _ => {}
        }
        self.go_on(pid);
    }

    /// A Go program has its first thread: that is enough.
    fn founds(&mut self, pid: u32) -> bool {
        let is = new_one(pid).is_some_and(|thread| self.lookouts.founds(pid, thread));
        if is {
            self.traced.remove(&pid);
            ptrace::detach(pid, 0);
        }
        is
    }

    /// A thread of a Go program has stopped, by which that one's end is seen. The others may be gone already.
    fn go_exit_watch(&mut self, tid: u32, process: u32, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_EXIT => {
                let moment = go_exit_watch::moment(process, ptrace::event_message(tid).unwrap_or(0));
                let buffers = self.snapshots.snapshot(tid, moment);
                if !buffers.is_empty() {
                    let kind = RawEventKind::buffers(tid, moment, buffers, String::new());
                    let _ = self.reports.send(RawEvent { ns: now_ns(), pid: process, tid: process, kind });
                }
                ptrace::resume(tid, false, 0);
            }
            ptrace::EVENT_STOP if is_job_control(signal) => ptrace::listen(tid),
            0 if !self.lookouts.bears(tid) => ptrace::detach(tid, signal),
            0 => ptrace::resume(tid, false, signal),
            other => {
                if other == ptrace::EVENT_STOP {
                    ptrace::trace_exit_only(tid); // it starts others, which do run code of the program
                }
                ptrace::resume(tid, false, 0);
            }
        }
    }

    fn go_on(&mut self, pid: u32) {
        if self.passing.is_over(pid) {
            self.traced.remove(&pid);
            ptrace::detach(pid, 0);
        } else {
            ptrace::resume(pid, false, 0);
        }
    }

    /// Whether the command will stop on its way.
    fn holds(&mut self, pid: u32, how: FirstStop) -> bool {
        match how {
            FirstStop::Exec => {
                self.held = self.seize(pid).then_some(pid);
                self.held.is_some()
            }
            FirstStop::Library(processes) => {
                let seized = ptrace::seize_for_signals(pid).is_ok();
                if seized {
                    self.knows(Some(pid));
                    self.passing.begin(pid, Some(*processes));
                }
                seized
            }
        }
    }

    /// The child is traced from its beginning.
    fn forks(&mut self, pid: u32, moment: SnapshotMoment) {
        let child = new_one(pid);
        self.knows(child);
        self.report(pid, moment, moment);
    }

    /// A thread has traps of its own. (Inherited events would send their signal to the first thread, which
    /// stands somewhere else.) So has one of the few processes that are made this way.
    fn clones(&mut self, tid: u32) {
        let Some(new) = new_one(tid) else { return };
        let pid = self.process_of(tid);
        if proc::process_of(new) == Some(new) {
            self.knows(Some(new));
            return;
        }
        let traps = self.traced.get(&tid).map_or_else(BreakpointTraps::none, |traps| traps.for_thread(new));
        self.traced.insert(new, traps);
        self.threads.insert(new, pid);
        if self.threads.values().filter(|&&of| of == pid).count() >= THREADS {
            ptrace::ignore_new_threads(tid);
        }
    }

    /// A process that is traced from here on, whatever had its number before.
    fn knows(&mut self, new: Option<u32>) {
        let Some(new) = new else { return };
        self.threads.remove(&new);
        self.executing.remove(&new);
        self.traced.insert(new, BreakpointTraps::none());
    }

    /// Another program: what was set is gone with the old one, and so are its threads. False: it was held for
    /// nothing.
    fn executes(&mut self, pid: u32) -> bool {
        let gone: Vec<u32> = self.threads.iter().filter(|(_, of)| **of == pid).map(|(tid, _)| *tid).collect();
        for tid in gone {
            self.threads.remove(&tid);
            self.traced.remove(&tid);
        }
        self.executing.remove(&pid);
        self.awaited.retain(|(other, _)| *other != pid);
        let held = self.held.take_if(|held| *held == pid).is_some();
        self.traced.insert(pid, BreakpointTraps::none());
        if self.lookouts.found(pid, &running(pid)) {
            return true;
        }
        if !needs_stops(&running(pid)) {
            return self.passes(pid, held);
        }
        let set = BreakpointTraps::set(pid).map(|traps| traps.with_entry(pid));
        match set.or_else(|| BreakpointTraps::at_entry(pid)) {
            Some(traps) => drop(self.traced.insert(pid, traps)),
            None => self.awaited.push((pid, Instant::now())),
        }
        true
    }

    /// A program that needs no other stops has one where its own code begins; then it is let go, if it was held.
    /// False: it has not even that.
    fn passes(&mut self, pid: u32, held: bool) -> bool {
        match command_start::at_entry(pid) {
            Some(traps) => {
                self.traced.insert(pid, traps);
                if held {
                    self.passing.begin(pid, None);
                }
            }
            None if held => drop(self.traced.remove(&pid)),
            None => return true,
        }
        self.traced.contains_key(&pid)
    }

    /// The C library is there, and has not written yet: its writes are watched from here on.
    fn begins(&mut self, pid: u32) {
        // There are four registers for breakpoints: those of the traps are given back first.
        self.traced.insert(pid, BreakpointTraps::none());
        if let Some(traps) =
            Some(pid).filter(|pid| needs_stops(&running(*pid))).and_then(BreakpointTraps::set)
        {
            self.traced.insert(pid, traps);
        }
        let _nothing = self.snapshots.snapshot(pid, SnapshotMoment::Sample);
        self.passing.begun(pid);
    }

    /// The memory is there until the last thread has ended; the main thread's end stands for all.
    fn ends(&mut self, tid: u32) {
        self.traced.insert(tid, BreakpointTraps::none());
        if proc::process_of(tid).is_some_and(|process| process != tid) {
            return;
        }
        // The main thread also ends when another one executes.
        if self.threads.contains_key(&tid) || self.executing.contains(&tid) {
            return;
        }
        let ended = ptrace::event_message(tid).unwrap_or(0);
        let moment = if ended & 0x7f == 0 { SnapshotMoment::Exit } else { SnapshotMoment::Signal };
        self.report(tid, moment, moment);
    }

    fn process_of(&self, tid: u32) -> u32 {
        self.threads.get(&tid).copied().unwrap_or(tid)
    }

    /// A signal goes on to the process, but for that of a trap.
    fn signal(&mut self, pid: u32, signal: i32) {
        let by = if signal == breakpoint_traps::SIGNAL { ptrace::signal_fd(pid) } else { None };
        match by.and_then(|fd| self.traced.get(&pid)?.kind_of(fd)) {
            Some(trap) => {
                self.trapped(pid, trap);
                self.go_on(pid);
            }
            None if signal == breakpoint_traps::SIGNAL && self.stands(pid) => {}
            None => ptrace::resume(pid, false, signal),
        }
    }

    /// The kernel says that the command's C library stands: it is let go, and has hardly stood still. False: it is another
    /// signal.
    fn stands(&mut self, pid: u32) -> bool {
        let Some(list) = self.passing.list(pid).filter(|_| ptrace::is_kernel_signal(pid)) else {
            return false;
        };
        self.snapshots.image_started(pid, list);
        self.passing.begun(pid);
        self.go_on(pid);
        self.snapshots.resumed(pid);
        true
    }

    fn trapped(&mut self, pid: u32, trap: TrapKind) {
        let anew = self.traced.get_mut(&pid).is_some_and(|traps| traps.count_stop(trap));
        match self.process_of(pid) {
            process if process != pid && trap == TrapKind::Exec => self.executing.insert(process),
            process => self.executing.remove(&process),
        };
        match trap {
            TrapKind::Entry => self.begins(pid),
            TrapKind::Exec if anew => self.report(pid, SnapshotMoment::Exec, SnapshotMoment::Exec),
            TrapKind::Exec => self.report(pid, SnapshotMoment::Exec, SnapshotMoment::Sample),
            TrapKind::Write => self.report(pid, SnapshotMoment::Sample, SnapshotMoment::Sample),
        }
    }

    /// That it cannot be traced (somebody else does, or it has ended) leaves it unseen at its end, and no more.
    fn attach(&mut self, pid: u32, exe: &Path) {
        if self.traced.contains_key(&pid) {
            return; // its stop at execve(2) came first
        }
        let running = running(pid);
        let wanted = needs_stops(&running) || (!running.exists() && needs_stops(exe));
        if wanted && self.seize(pid) {
            self.awaited.push((pid, Instant::now()));
        } else if !wanted {
            self.lookouts.seek(pid, &running);
        }
    }

    fn seize(&mut self, pid: u32) -> bool {
        let seized = ptrace::seize_for_lifecycle(pid).is_ok();
        self.knows(seized.then_some(pid));
        seized
    }

    /// Sets the traps of those that have their C library by now.
    fn set_traps(&mut self) {
        let traced = &mut self.traced;
        self.awaited.retain(|&(pid, since)| {
            let Some(known) = traced.get_mut(&pid) else { return false };
            match BreakpointTraps::set(pid) {
                Some(traps) => *known = traps,
                None => return since.elapsed() < LIBRARY,
            }
            false
        });
    }

    /// A look, searched for as at the moment `like`, at the process of a thread.
    fn report(&mut self, tid: u32, moment: SnapshotMoment, like: SnapshotMoment) {
        let pid = self.process_of(tid);
        let buffers = self.snapshots.snapshot(pid, like);
        if !buffers.is_empty() {
            let kind = RawEventKind::buffers(pid, moment, buffers, String::new());
            // Nobody wants reports any more when the recording has ended.
            let _ = self.reports.send(RawEvent { ns: now_ns(), pid, tid: pid, kind });
        }
    }
}

fn running(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/exe"))
}

/// The number of what a thread has just started.
fn new_one(tid: u32) -> Option<u32> {
    ptrace::event_message(tid).and_then(|new| u32::try_from(new).ok())
}

fn is_job_control(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}
