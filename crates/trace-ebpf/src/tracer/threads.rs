//! The threads of a process other than its first one.

use std::time::{Duration, Instant};

use weir_sys::ptrace::{self, PtraceStop, new_tid};
use weir_sys::{executable, file_system::status, proc};
use weir_trace_api::RawEventKind;
use weir_trace_api::breakpoint_traps::BreakpointTraps;

use super::{Tracer, needs_stops};

/// Threads per process with breakpoints and exit stops: each breakpoint is a descriptor, and most programs write from their first
/// threads.
const MAX_TRAPPED_THREADS: usize = 8;
/// Threads per process whose creation is a stop, which costs some 50 us: a program that starts a thread for each request creates
/// more. Later ones are not traced.
const MAX_CREATED_THREADS: usize = 64;
/// Threads per process that existed before the trace and are traced. Attaching to one takes some 10 us.
const MAX_EARLIER_THREADS: usize = 1024;
/// How long a new tracee waits for the stop of its creator, which follows within microseconds unless the creator is killed.
const MAX_HELD: Duration = Duration::from_millis(50);
/// How often to list the threads of a process, which may create others meanwhile.
const MAX_LISTINGS: usize = 4;

impl Tracer<'_> {
    /// Adds a new thread and sets its breakpoints. (Inherited perf events would signal the first thread instead of the one that
    /// hits the breakpoint.) clone(2) may also have created a process.
    pub(super) fn on_clone(&mut self, tid: u32) {
        let Some(new) = new_tid(tid) else { return };
        self.add_new(tid, new);
        self.resume_held(tid);
    }

    fn add_new(&mut self, tid: u32, new: u32) {
        let pid = self.process_of(tid);
        if proc::process_of(new) == Some(new) {
            self.add_tracee(new);
            return;
        }
        let threads = self.threads.values().filter(|&&process| process == pid).count() + 1;
        let creator = self.tracees.get(&tid).filter(|_| threads <= MAX_TRAPPED_THREADS);
        let traps = creator.map_or_else(BreakpointTraps::none, |traps| traps.for_thread(new));
        self.tracees.insert(new, traps);
        self.threads.insert(new, pid);
        if threads >= MAX_CREATED_THREADS {
            ptrace::ignore_new_threads(tid);
        }
    }

    /// Leaves a new tracee in its first stop until its creator's stop is handled. Otherwise the tracee could write before the
    /// snapshot of the bytes that it has from its creator, and before its breakpoints are set.
    pub(super) fn hold(&mut self, stop: PtraceStop) {
        self.held.insert(stop.tid, (stop, Instant::now()));
    }

    /// Resumes the thread or process that the tracee `tid` has just created, if it is held.
    pub(super) fn resume_held(&mut self, tid: u32) {
        if self.held.is_empty() {
            return;
        }
        if let Some((stop, _)) = new_tid(tid).and_then(|new| self.held.remove(&new)) {
            self.handle_stop(stop);
        }
    }

    /// Resumes tracees whose creators have had no stop.
    pub(super) fn resume_orphans(&mut self) {
        for (tid, _) in self.held.extract_if(|_, (_, since)| since.elapsed() > MAX_HELD) {
            ptrace::resume(tid, false, 0);
        }
    }

    /// Returns whether a process has had more than one thread.
    pub(super) fn has_threads(&self, pid: u32) -> bool {
        self.ran_before.contains_key(&pid) || self.threads.values().any(|process| *process == pid)
    }

    /// Attaches to the first threads that a tracee had before. They have no breakpoints, so that weir's descriptors suffice.
    pub(super) fn seize_first_threads(&mut self, pid: u32) {
        for tid in proc::threads(pid).into_iter().filter(|tid| *tid != pid).take(MAX_TRAPPED_THREADS - 1) {
            self.seize_thread(pid, tid, ptrace::seize_for_lifecycle);
        }
    }

    /// Attaches to the later threads of a process, without exit stops. Attaching takes a lock that execve(2) in one thread holds until
    /// the others have exited, and a thread in an exit stop would wait for the tracer. So the caller attaches to these threads first.
    pub(super) fn watch_forks_of_later_threads(&mut self, pid: u32) {
        for _ in 0..MAX_LISTINGS {
            let threads = proc::threads(pid).into_iter().filter(|tid| *tid != pid);
            let later = threads.skip(MAX_TRAPPED_THREADS - 1).take(MAX_EARLIER_THREADS);
            let attached = later.filter(|tid| self.seize_thread(pid, *tid, ptrace::seize_for_forks)).count();
            if attached == 0 {
                return;
            }
            self.has_fork_watches = true;
        }
    }

    /// Attaches to a thread of process `pid` by `seize`. Returns false if it is a tracee already or cannot be one.
    fn seize_thread(&mut self, pid: u32, tid: u32, seize: fn(u32) -> std::io::Result<()>) -> bool {
        // A thread that a tracee has created just now is traced already.
        if self.tracees.contains_key(&tid) || seize(tid).is_err() {
            return false;
        }
        if proc::process_of(tid) == Some(pid) {
            self.tracees.insert(tid, BreakpointTraps::none());
            self.threads.insert(tid, pid);
        } else {
            self.release(tid);
        }
        true
    }

    /// Detaches from the threads of a process whose first thread cannot be traced.
    pub(super) fn release_threads(&mut self, pid: u32) {
        let threads: Vec<u32> =
            self.threads.extract_if(|_, process| *process == pid).map(|(tid, _)| tid).collect();
        for tid in threads {
            self.tracees.remove(&tid);
            self.release(tid);
        }
    }

    /// Detaches from a running tracee at its next stop.
    fn release(&mut self, tid: u32) {
        self.strangers.insert(tid);
        let _ended = ptrace::interrupt(tid);
    }

    /// Emits that the buffers at a fork(2) at `ns` were not read, if the process needs stops and its thread `tid` had none.
    pub(super) fn check_fork(&mut self, pid: u32, tid: u32, ns: u64) {
        let is_known = |id: &u32| self.tracees.contains_key(id) || self.ended.contains(id);
        let is_early = self.ran_before.get(&pid).is_some_and(|since| ns < *since);
        if is_known(&pid) && (is_early || !is_known(&tid)) {
            let link = executable::link(pid);
            if status(&link).is_err() || needs_stops(&link) {
                self.emit(pid, RawEventKind::UnstoppedFork);
            }
        }
    }
}
