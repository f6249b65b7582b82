//! Stops all threads of a process for a moment, and resumes them.

use weir_model::trace::RuntimeId;
use weir_sys::clock::now_ns;
use weir_sys::ptrace::held_exit::ends_alone;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop};

use super::interruptible::{ThreadFacts, can_interrupt, is_poll_of_go, is_receive};
use super::tracee::TraceeState;
use super::tracees::Tracees;

/// The longest wait for the threads' stops. A thread in user mode stops within a scheduler tick.
const STOP_TIMEOUT_NS: u64 = 30_000_000;

impl Tracees {
    /// Stops all threads of a process if the program cannot notice it. Returns whether every thread is stopped. Returns false for a
    /// killed process: a thread in its exit stop may have written bytes that its streams have not noted.
    /// [`Tracees::release`] must follow in both cases.
    pub(crate) fn hold(&mut self, pid: u32) -> bool {
        let Some(process) = self.processes.get(&pid) else { return false };
        let in_vfork = self.processes.values().any(|other| other.vfork_parent == Some(pid));
        let tids: Vec<u32> = process.threads.iter().copied().collect();
        let cannot_stop = |tid: &u32| !self.can_stop(pid, *tid);
        if in_vfork
            || self.early_stops.contains_key(&pid)
            || tids.iter().any(|tid| cannot_stop(tid) || self.ends_with_process(*tid))
        {
            return false;
        }
        let deadline = now_ns() + STOP_TIMEOUT_NS;
        tids.iter().for_each(|tid| self.request_stop(*tid));
        tids.into_iter().all(|tid| self.await_stop(tid, deadline))
    }

    fn can_stop(&self, pid: u32, tid: u32) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        if thread.exiting {
            return true;
        }
        match thread.state {
            TraceeState::Stopped => true,
            TraceeState::GroupStopped => false,
            TraceeState::Running => {
                let facts = ThreadFacts { is_go: self.is_go(pid), times_receives: thread.times_receives };
                can_interrupt(pid, tid, facts)
            }
        }
    }

    /// Makes a stopped thread repeat the call that the stop has ended with EINTR, see
    /// [`weir_sys::ptrace::repeat::RepeatedCall`]. The scheduler of Go polls again by itself, with the rest of its timeout.
    pub(super) fn repeat_call(&mut self, tid: u32) {
        let is_go = self.threads.get(&tid).is_some_and(|thread| self.is_go(thread.pid));
        let polls = |call: SyscallRegisters| is_poll_of_go(call.number, &call.args);
        if is_go && registers::current_syscall(tid).is_some_and(polls) {
            return;
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            let waited_ns = thread.waits_since_ns.take().map_or(0, |since| now_ns().saturating_sub(since));
            let ended = thread.repeated_call.repeat_rest(tid, waited_ns);
            thread.times_receives |= ended.is_some_and(|call| is_receive(tid, &call));
        }
    }

    fn is_go(&self, pid: u32) -> bool {
        let walkers = self.processes.get(&pid).map(|process| &process.walkers);
        walkers.is_some_and(|walkers| walkers.iter().any(|walker| walker.runtime() == RuntimeId::GO))
    }

    /// Returns whether a thread has reached its exit stop because its process ends, by a kill or by exit_group(2).
    fn ends_with_process(&self, tid: u32) -> bool {
        let is_exit = |stop: &PtraceStop| stop.tid == tid && stop.status >> 16 == libc::PTRACE_EVENT_EXIT;
        self.threads.get(&tid).is_some_and(|thread| thread.ended_with_process)
            || self.deferred_stops.iter().any(is_exit) && !ends_alone(tid)
    }

    fn request_stop(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if thread.state == TraceeState::Running && !thread.exiting && !thread.stop_requested {
            thread.stop_requested = ptrace::interrupt(tid).is_ok();
        }
    }

    fn await_stop(&mut self, tid: u32, deadline: u64) -> bool {
        self.timer.set(deadline);
        loop {
            let Some(thread) = self.threads.get(&tid) else { return false };
            if thread.state != TraceeState::Running || thread.exiting {
                return !self.ends_with_process(tid);
            }
            match ptrace::wait_for(tid) {
                Ok(Some(stop)) => return self.on_awaited_stop(stop),
                Ok(None) if now_ns() < deadline => {}
                _ => return false,
            }
        }
    }

    /// Notes a stop. A stop for another reason than the request is queued for the event loop.
    fn on_awaited_stop(&mut self, stop: PtraceStop) -> bool {
        if libc::WIFSTOPPED(stop.status) {
            if let Some(thread) = self.threads.get_mut(&stop.tid) {
                thread.state = TraceeState::Stopped;
            }
            let requested = libc::WSTOPSIG(stop.status) == libc::SIGTRAP && stop.status >> 16 == EVENT_STOP;
            if !requested {
                self.deferred_stops.push_back(stop);
            }
            return !self.ends_with_process(stop.tid);
        }
        self.deferred_stops.push_back(stop);
        false
    }

    /// Resumes the threads that [`Tracees::hold`] stopped, except those with a queued stop of their own.
    pub(crate) fn release(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else { return };
        let tids: Vec<u32> = process.threads.iter().copied().collect();
        for tid in tids {
            let queued = self.deferred_stops.iter().any(|stop| stop.tid == tid);
            let requested = self.threads.get_mut(&tid).filter(|thread| thread.stop_requested && !queued);
            if let Some(thread) = requested.filter(|thread| thread.state == TraceeState::Stopped) {
                thread.stop_requested = false;
                self.repeat_call(tid);
                self.resume(tid, 0);
            }
        }
    }
}
