//! What a stop of a thread means, and how it goes on.

use std::time::Duration;

use weir_sys::clock::now_ns;
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop};

use crate::delay::skip;
use crate::launch::signals;
use crate::supervise::event_loop::Supervisor;
use crate::supervise::interruptible::mend_call;
use crate::supervise::tracees::ThreadState;

/// A system call stop, with PTRACE_O_TRACESYSGOOD.
const CALL: i32 = libc::SIGTRAP | 0x80;

impl Supervisor {
    /// Handles it and lets the thread go on.
    pub(crate) fn on_stop(&mut self, stop: PtraceStop) {
        let PtraceStop { tid, status } = stop;
        if !libc::WIFSTOPPED(status) {
            return self.gone(tid, status);
        }
        let Some(thread) = self.world.threads.get_mut(&tid) else {
            self.world.early.insert(tid, (stop, now_ns()));
            return;
        };
        thread.state = ThreadState::Stopped;
        let asked = std::mem::take(&mut thread.asked);
        match (libc::WSTOPSIG(status), status >> 16) {
            (CALL, 0) => self.on_call(tid),
            (signal, 0) => self.world.go_on(tid, signal),
            (_, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                self.on_birth(tid, status >> 16);
            }
            (_, libc::PTRACE_EVENT_EXEC) => self.on_exec(tid),
            (_, libc::PTRACE_EVENT_EXIT) => self.on_exit(tid),
            (libc::SIGTRAP, EVENT_STOP) => {
                if asked {
                    mend_call(tid);
                }
                self.world.go_on(tid, 0);
            }
            (signal, EVENT_STOP) => self.on_group_stop(tid, signal),
            _ => self.world.go_on(tid, 0),
        }
    }

    /// At the entry or the exit of a call of a process that is watched, or no longer is.
    fn on_call(&mut self, tid: u32) {
        let Some(thread) = self.world.threads.get_mut(&tid) else { return };
        match thread.inside.take() {
            // Killed at this stop, it has not been answered: what it was skipped says still what it wrote.
            Some(inside) if !skip::at_exit(tid, &inside) => thread.inside = Some(inside),
            Some(_answered) => {}
            None if self.world.is_watched_thread(tid) => {
                let inside = skip::at_entry(&mut self.world, tid);
                if let Some(thread) = self.world.threads.get_mut(&tid) {
                    thread.inside = inside;
                }
            }
            None => {}
        }
        self.world.go_on(tid, 0);
    }

    /// Job control has stopped it.
    fn on_group_stop(&mut self, tid: u32, signal: i32) {
        if let Some(thread) = self.world.threads.get_mut(&tid) {
            thread.state = ThreadState::Listens;
        }
        ptrace::listen(tid);
        if tid == self.world.root && !goes_on(tid) {
            signals::stop_with(tid, signal);
        }
    }
}

/// Whether it was continued meanwhile: weir may have been stopped beside it, and continued with it before it came to
/// know of either. The kernel then tells so by another stop, as soon as it is let listen.
fn goes_on(tid: u32) -> bool {
    const TIMES: u32 = 10;
    (0..TIMES).any(|time| {
        if time > 0 {
            std::thread::sleep(Duration::from_micros(500));
        }
        ptrace::has_stop(tid)
    })
}
