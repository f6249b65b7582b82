//! Processes that run already when the tracer attaches to them: because they ran before the trace, or because the event of their
//! execve(2) arrives late.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weir_sys::clock::now_ns;
use weir_sys::{executable, file_system::status, process_stat, process_status, ptrace};
use weir_trace_api::RawEventKind;
use weir_walkers::is_go;

use super::{Tracer, needs_stops};
use crate::go_exit_watch::has_thread_in_execve;

/// The most processes that ran before the trace and are traced. Each needs descriptors for its breakpoints, and weir may have 1024
/// descriptors by default.
const MAX_RUNNING: usize = 64;
/// How long to wait for a process to leave execve(2), which takes it about a millisecond.
const EXECVE_TIMEOUT: Duration = Duration::from_millis(20);

/// Waits until no thread of a process is in execve(2). Returns whether none is: the tracer must not attach to a process that never
/// leaves it, because PTRACE_SEIZE waits for the same lock.
fn leaves_execve(pid: u32) -> bool {
    let start = Instant::now();
    while process_status::is_executing(pid) || has_thread_in_execve(pid) {
        if start.elapsed() > EXECVE_TIMEOUT {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

impl Tracer<'_> {
    /// Attaches to a process that ran before the trace, and to its threads, if its buffers need stops. Emits
    /// [`RawEventKind::Unstopped`] if it cannot be traced.
    pub(super) fn check_running(&mut self, pid: u32) {
        let link = executable::link(pid);
        // A tracee has created it, or it has no image: a zombie or a kernel thread.
        if self.tracees.contains_key(&pid) || status(&link).is_err() {
            return;
        }
        let wanted = needs_stops(&link);
        if wanted && (self.ran_before.len() >= MAX_RUNNING || !leaves_execve(pid)) {
            return self.emit(pid, RawEventKind::Unstopped);
        }
        if wanted {
            self.watch_forks_of_later_threads(pid);
        }
        self.check_image(pid, &link);
        if wanted && self.tracees.contains_key(&pid) {
            self.seize_first_threads(pid);
            self.watch_forks_of_later_threads(pid); // also of those that the first threads have created meanwhile
            self.ran_before.insert(pid, now_ns());
        } else if wanted {
            self.release_threads(pid);
        }
    }

    /// Attaches to a process that has executed `exe` if its buffers need stops. Emits [`RawEventKind::Unstopped`] if it cannot be
    /// traced.
    pub(super) fn check_image(&mut self, pid: u32, exe: &Path) {
        if self.tracees.contains_key(&pid) || self.go_exit_watches.is_watched(pid) {
            return; // its exec stop came first
        }
        let link = executable::link(pid);
        let is_gone = || status(&link).is_err();
        // It was stopped at its exit before the event of its execve(2) was handled.
        if self.ended.remove(&pid) && is_gone() {
            return;
        }
        // The file cannot be examined: it is in another root directory, or was removed.
        let is_unknown = || exe.is_absolute() && status(exe).is_err();
        let wanted = needs_stops(&link) || is_gone() && (needs_stops(exe) || is_unknown());
        let seized = wanted && !executable::traces_others(pid) && self.seize(pid);
        if seized && process_stat::read(pid).is_some_and(|stat| stat.is_exiting) {
            // Too late for its exit stop. The kernel programs may have forgotten it by now.
            self.tracees.remove(&pid);
            self.emit(pid, RawEventKind::Unstopped);
        } else if seized && !self.is_followed(pid) {
            self.tracees.remove(&pid);
            self.strangers.insert(pid);
            let _ended = ptrace::interrupt(pid);
        } else if seized && !is_gone() {
            self.awaiting_library.push((pid, Instant::now()));
        } else if wanted || is_gone() && is_go(exe) {
            self.emit(pid, RawEventKind::Unstopped);
        } else {
            self.go_exit_watches.await_thread(pid, &link);
        }
    }

    /// Returns whether the kernel programs follow a tracee. They forget a process at its end, and the event of its execve(2) may be
    /// handled later.
    fn is_followed(&self, pid: u32) -> bool {
        self.processes.as_ref().is_none_or(|followed| followed.get(&pid, 0).is_ok())
    }

    pub(super) fn seize(&mut self, pid: u32) -> bool {
        let seized = ptrace::seize_for_lifecycle(pid).is_ok();
        if seized {
            self.add_tracee(pid);
        }
        seized
    }
}
