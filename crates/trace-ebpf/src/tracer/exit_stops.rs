//! The exit stops of the tracees: the last moments at which the memory of a process can be read.

use weir_model::trace::SnapshotMoment;
use weir_sys::proc;
use weir_sys::ptrace::{self, held_exit};
use weir_trace_api::RawEventKind;
use weir_trace_api::breakpoint_traps::BreakpointTraps;

use super::Tracer;
use crate::go_exit_watch;

impl Tracer<'_> {
    /// Takes the last snapshot of a process: at the exit stop of its first thread or, if that one ends by its own exit(2) before the
    /// others, of the last thread. The others still use the buffers, and the memory is mapped until the last thread exits.
    pub(super) fn on_exit(&mut self, tid: u32) {
        self.tracees.insert(tid, BreakpointTraps::none());
        self.exit_writes.note(tid);
        let pid = proc::process_of(tid).unwrap_or(tid);
        // The first thread also exits when another one calls execve(2).
        if self.threads.contains_key(&pid) || self.executing.contains(&pid) {
            return;
        }
        let ends_alone = held_exit::ends_alone(tid);
        if ends_alone && self.has_other_living_thread(pid, tid) {
            self.ended_alone.insert(tid);
            return;
        }
        if tid != pid && !self.ended_alone.remove(&pid) {
            return;
        }
        let status = ptrace::event_message(tid).unwrap_or(0);
        let moment = match () {
            // Another thread may call execve(2) without a breakpoint.
            () if !ends_alone && self.has_threads(pid) => go_exit_watch::moment(pid, status),
            () if status & 0x7f == 0 => SnapshotMoment::Exit,
            () => SnapshotMoment::Signal,
        };
        // The memory cannot be read through a first thread that has ended.
        let mut buffers = self.snapshots.snapshot(tid, moment);
        self.exit_writes.remove_from(moment, pid, tid, &mut buffers);
        self.send(pid, tid, moment, buffers);
    }

    /// Forgets a thread that has ended. Emits that the buffers at the end of a process were not read, if its first thread ended before
    /// the others and the last one had no exit stop.
    pub(super) fn forget_exit(&mut self, tid: u32) {
        self.exit_writes.forget(tid);
        if self.ended_alone.remove(&tid) && !self.threads.contains_key(&tid) {
            self.emit(tid, RawEventKind::Unstopped);
        }
    }

    /// Returns whether another thread of the process lives. A thread that has left its exit stop is not dead at once.
    fn has_other_living_thread(&self, pid: u32, tid: u32) -> bool {
        let mut others = proc::threads(pid).into_iter().filter(|&other| other != tid);
        others.any(|other| !self.ended_alone.contains(&other) && !proc::is_dead(other))
    }
}
