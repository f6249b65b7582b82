//! The stops of the thread that is watched for the exit of a Go program.

use weir_model::trace::SnapshotMoment;
use weir_sys::ptrace::{self, new_tid};
use weir_trace_api::RawEventKind;

use super::Tracer;
use crate::go_exit_watch;

impl Tracer<'_> {
    /// Handles the first clone(2) of a Go program: from now on only the new thread is traced.
    pub(super) fn starts_go_watch(&mut self, pid: u32) -> bool {
        let starts = new_tid(pid).is_some_and(|thread| self.go_exit_watches.first_thread(pid, thread));
        if starts {
            self.resume_held(pid);
            self.tracees.remove(&pid);
            ptrace::detach(pid, 0);
        }
        starts
    }

    /// Handles a stop of the thread that is watched for the exit of a Go program. Other threads may have exited already.
    pub(super) fn handle_go_stop(&mut self, tid: u32, process: u32, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_EXIT => {
                let moment = go_exit_watch::moment(process, ptrace::event_message(tid).unwrap_or(0));
                let is_alone =
                    moment != SnapshotMoment::Exec && go_exit_watch::await_other_threads(process, tid);
                let state =
                    self.processes.as_ref().filter(|_| is_alone).and_then(|map| map.get(&process, 0).ok());
                let written = state.map_or(0..0, |state| state.written_at..state.written_end);
                let mut buffers = self.snapshots.snapshot(tid, moment);
                let flushing = self.snapshots.flushing();
                if go_exit_watch::remove_written(&mut buffers, &written, &flushing) {
                    self.emit(process, RawEventKind::Unstopped);
                }
                self.send(process, tid, moment, buffers);
                ptrace::resume(tid, false, 0);
            }
            ptrace::EVENT_STOP if ptrace::is_job_control(signal) => ptrace::listen(tid),
            0 if !self.go_exit_watches.count_signal(tid) => ptrace::detach(tid, signal),
            0 => ptrace::resume(tid, false, signal),
            event => {
                if event == ptrace::EVENT_STOP {
                    ptrace::trace_exit_only(tid); // the threads that it creates run code of the program
                }
                ptrace::resume(tid, false, 0);
            }
        }
    }
}
