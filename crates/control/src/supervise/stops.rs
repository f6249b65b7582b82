//! Decodes ptrace stops and resumes the stopped thread.

use std::time::Duration;

use weir_sys::clock::now_ns;
use weir_sys::held_signals;
use weir_sys::proc;
use weir_sys::ptrace::repeat::has_interrupted_call;
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop};

use super::event_loop::Supervisor;
use super::tracee::TraceeState;
use crate::delay::skip;
use crate::launch::signals;

/// The signal of a syscall stop with PTRACE_O_TRACESYSGOOD.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

impl Supervisor {
    /// Handles a stop and resumes the thread.
    pub(crate) fn on_stop(&mut self, stop: PtraceStop) {
        let PtraceStop { tid, status, .. } = stop;
        if self.is_kept_for_fork(stop) {
            return;
        }
        if !libc::WIFSTOPPED(status) {
            return self.on_reaped(tid, status);
        }
        let Some(thread) = self.tracees.threads.get_mut(&tid) else {
            self.tracees.early_stops.insert(tid, (stop, now_ns()));
            return;
        };
        thread.state = TraceeState::Stopped;
        let pid = thread.pid;
        // The kernel reports a requested stop as whichever stop comes first, such as the exit of the interrupted call.
        if std::mem::take(&mut thread.stop_requested) {
            self.tracees.repeat_call(tid);
            let Some(thread) = self.tracees.threads.get_mut(&tid) else { return };
            // The kernel drops a request at the entry of a call, but still ends the call with EINTR. A second request brings
            // a stop at which the call can be repeated.
            thread.stop_requested = ptrace::at_syscall_entry(tid) && ptrace::interrupt(tid).is_ok();
        }
        if self.detach_at_stop(tid, status) {
            return;
        }
        match (libc::WSTOPSIG(status), status >> 16) {
            (SYSCALL_STOP, 0) => self.on_syscall_stop(tid),
            (signal, 0) => {
                if pid == self.tracees.root {
                    held_signals::note_stop(tid, signal);
                }
                // Without a tracer an ignored signal is not delivered and ends no call.
                if has_interrupted_call(tid) && proc::ignores(tid, signal) {
                    self.tracees.repeat_call(tid);
                }
                self.tracees.resume(tid, signal);
            }
            (_, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                self.on_clone(tid, status >> 16);
            }
            (_, libc::PTRACE_EVENT_EXEC) => self.on_exec(tid),
            (_, libc::PTRACE_EVENT_EXIT) => self.on_exit(tid),
            (libc::SIGTRAP, EVENT_STOP) => {
                // A thread that returned late from its own call for weir is in such a stop too.
                self.tracees.repeat_call(tid);
                self.tracees.resume(tid, 0);
            }
            (signal, EVENT_STOP) => self.on_group_stop(tid, signal),
            _ => self.tracees.resume(tid, 0),
        }
    }

    /// Handles the entry or exit of a system call.
    fn on_syscall_stop(&mut self, tid: u32) {
        let Some(thread) = self.tracees.threads.get_mut(&tid) else { return };
        thread.repeated_call.restore_at_exit(tid);
        match thread.skipped_call.take() {
            // A thread that was killed at this stop keeps the call, which shows how many bytes it has written.
            Some(call) if !skip::at_exit(tid, &call) => thread.skipped_call = Some(call),
            Some(_finished) => {}
            None if self.tracees.thread_stops_at_syscalls(tid) => {
                let skipped_call = skip::at_entry(&mut self.tracees, tid);
                if let Some(thread) = self.tracees.threads.get_mut(&tid) {
                    thread.skipped_call = skipped_call;
                }
            }
            None => {}
        }
        if !self.on_possible_ptrace(tid) {
            self.tracees.resume(tid, 0);
        }
    }

    /// Handles a stop by job control: weir stops with the command.
    fn on_group_stop(&mut self, tid: u32, signal: i32) {
        if let Some(thread) = self.tracees.threads.get_mut(&tid) {
            thread.state = TraceeState::GroupStopped;
        }
        ptrace::listen(tid);
        if tid == self.tracees.root && !was_continued(tid) {
            signals::stop_with(tid, signal);
        }
    }
}

/// Returns whether a group-stopped thread has been continued. Weir may have been stopped and continued together with
/// the command before it saw the group stop; then PTRACE_LISTEN reports another stop at once.
fn was_continued(tid: u32) -> bool {
    const ATTEMPTS: u32 = 10;
    (0..ATTEMPTS).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(Duration::from_micros(500));
        }
        ptrace::has_stop(tid)
    })
}
