//! Processes that run already when the event of their execve(2) arrives.

use std::path::Path;
use std::time::Instant;

use weir_sys::{executable, file_system::status, process_stat, ptrace};
use weir_trace_api::RawEventKind;

use super::{Tracer, needs_stops};

impl Tracer<'_> {
    /// Attaches to a process that has executed `exe` if its buffers need stops. Emits that it cannot be traced if it cannot.
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
        // A file of which nothing is known any more: in another root directory, or removed.
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
        } else if wanted {
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
