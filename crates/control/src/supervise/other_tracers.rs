//! Programs that trace others, such as debuggers and strace. A process can have only one tracer (ptrace(2)), so weir detaches
//! from the processes that such a program traces.

use weir_sys::clock::now_ns;
use weir_sys::proc;
use weir_sys::ptrace::{self, SyscallStop, other_tracers};
use weir_sys::syscalls;

use super::event_loop::Supervisor;
use super::tracee::TraceeState;
use super::tracees::Tracees;
use crate::delay::outside_streams::reclaim_to_leave;
use crate::delay::write_ahead::reclaim_at_call;

/// How long a caller of ptrace(2) is held. Bytes that are written ahead of its target can be reclaimed when all threads of the
/// target block.
const MAX_WAIT_NS: u64 = 2_000_000_000;

/// A process from which weir detaches, because another program wants to trace it.
pub(super) struct PendingDetach {
    pid: u32,
    /// The thread that is held at the entry of its ptrace(2): of the tracer, or of the process itself (PTRACE_TRACEME).
    caller: u32,
    /// The end of the wait on the clock of [`now_ns`].
    until_ns: u64,
}

impl Supervisor {
    /// Handles a system call stop of a thread whose program imports ptrace(2). Returns true if the thread must not be resumed:
    /// it is detached, or it stays stopped until its target is detached.
    pub(super) fn on_possible_ptrace(&mut self, tid: u32) -> bool {
        if !self.tracees.may_trace(tid) {
            return false;
        }
        let SyscallStop::Entry { arch, number, args } = ptrace::syscall_stop(tid) else { return false };
        if syscalls::is_foreign(arch, number) || number as i64 != libc::SYS_ptrace {
            return false;
        }
        let target = other_tracers::target(tid, &args).and_then(|target| self.tracees.threads.get(&target));
        let Some(pid) = target.map(|target| target.pid) else { return false };
        let traces_itself = self.tracees.threads.get(&tid).is_some_and(|thread| thread.pid == pid);
        if traces_itself && pid == self.tracees.root {
            self.tracees.add_limitation(format!(
                "{} could not have its parent trace it: its parent is weir",
                proc::label(pid)
            ));
            return false;
        }
        self.detaches.push(PendingDetach { pid, caller: tid, until_ns: now_ns() + MAX_WAIT_NS });
        self.advance_detaches();
        true
    }

    /// Takes the next step of all pending detaches.
    pub(super) fn advance_detaches(&mut self) {
        for detach in std::mem::take(&mut self.detaches) {
            if !self.advance(&detach) {
                self.detaches.push(detach);
            }
        }
    }

    /// Takes the next step of a detach. Returns whether it has ended, and its caller has been resumed.
    fn advance(&mut self, detach: &PendingDetach) -> bool {
        let PendingDetach { pid, caller, until_ns } = *detach;
        let is_late = now_ns() >= until_ns;
        if self.tracees.live_thread(pid).is_none() {
            self.tracees.resume(caller, 0);
            return true;
        }
        if self.tracees.written_ahead.contains(pid) {
            self.reclaim_for_tracer(pid, caller);
            if is_late {
                self.refuse(pid, caller);
            }
            return is_late;
        }
        self.stop_to_detach(pid, caller);
        if is_late && self.tracees.live_thread(pid).is_some() {
            self.refuse(pid, caller);
        }
        is_late
    }

    fn reclaim_for_tracer(&mut self, pid: u32, caller: u32) {
        let is_own_call = self.tracees.threads.get(&caller).is_some_and(|thread| thread.pid == pid);
        if is_own_call {
            reclaim_at_call(&mut self.tracees, pid, caller);
        } else {
            reclaim_to_leave(&mut self.tracees, pid);
        }
    }

    /// Lets the other tracer's call fail: it returns EPERM, because weir stays the tracer.
    fn refuse(&mut self, pid: u32, caller: u32) {
        if let Some(process) = self.tracees.processes.get_mut(&pid) {
            process.detaching = false;
        }
        self.tracees.add_limitation(format!(
            "{} could not be traced by another program: it did not stop where weir can detach from it",
            proc::label(pid)
        ));
        self.tracees.resume(caller, 0);
    }

    /// Requests a stop of all threads of a process, and detaches from the caller, which is stopped.
    fn stop_to_detach(&mut self, pid: u32, caller: u32) {
        let Some(process) = self.tracees.processes.get_mut(&pid) else { return };
        process.detaching = true;
        let tids: Vec<u32> = process.threads.iter().copied().collect();
        for tid in tids {
            let Some(thread) = self.tracees.threads.get_mut(&tid).filter(|thread| !thread.exiting) else {
                continue;
            };
            if tid == caller {
                self.detach_thread(tid, 0);
            } else if thread.state != TraceeState::Stopped && !thread.stop_requested {
                thread.stop_requested = ptrace::interrupt(tid).is_ok();
            }
        }
    }

    /// Detaches from a thread at a stop if another program wants to trace its process. Returns whether it did so. A lifecycle
    /// stop is handled first.
    pub(super) fn detach_at_stop(&mut self, tid: u32, status: i32) -> bool {
        let Some(thread) = self.tracees.threads.get(&tid) else { return false };
        let is_wanted = self.tracees.processes.get(&thread.pid).is_some_and(|process| process.detaching);
        let event = status >> 16;
        let is_lifecycle = event != 0 && event != ptrace::EVENT_STOP;
        // A thread in a changed call gets its registers back at the exit of the call.
        if !is_wanted || is_lifecycle || thread.stop_requested || thread.skipped_call.is_some() {
            return false;
        }
        let is_signal = event == 0 && libc::WSTOPSIG(status) & 0x80 == 0;
        self.detach_thread(tid, if is_signal { libc::WSTOPSIG(status) } else { 0 });
        self.advance_detaches();
        true
    }

    /// Detaches from a stopped thread, and forgets it; with the last one, its process.
    fn detach_thread(&mut self, tid: u32, signal: i32) {
        let Some(thread) = self.tracees.threads.get_mut(&tid) else { return };
        thread.repeated_call.restore_args(tid);
        let pid = thread.pid;
        self.tracees.detached_for_tracers.entry(pid).or_insert_with(|| proc::names(pid).1.to_string());
        ptrace::detach(tid, signal);
        self.tracees.threads.remove(&tid);
        if let Some(process) = self.tracees.processes.get_mut(&pid) {
            process.threads.remove(&tid);
        }
        if self.tracees.live_thread(pid).is_none() {
            self.tracees.give_up_fork_copies(pid);
            self.each_handler(|handler, tracees| handler.on_detached(tracees, pid));
            self.tracees.written_ahead.forget(pid);
            self.tracees.processes.remove(&pid);
        }
    }

    /// Returns whether weir has detached from the command, whose end is then no stop of a tracee.
    pub(super) fn has_detached_root(&self) -> bool {
        self.exit.is_none() && self.tracees.detached_for_tracers.contains_key(&self.tracees.root)
    }
}

impl Tracees {
    /// Returns whether the program of a thread imports ptrace(2).
    pub(super) fn may_trace(&self, tid: u32) -> bool {
        let process = self.threads.get(&tid).and_then(|thread| self.processes.get(&thread.pid));
        process.is_some_and(|process| process.may_trace)
    }

    /// Returns a sentence about the processes that other programs trace; None if there are none.
    pub(super) fn detached_sentence(&self) -> Option<String> {
        let labels = self.detached_for_tracers.iter().map(|(pid, name)| format!("{pid} ({name})"));
        let labels: Vec<String> = labels.take(SHOWN).collect();
        let more = self.detached_for_tracers.len() - labels.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (processes, its) = match self.detached_for_tracers.len() {
            0 => return None,
            1 => ("process", "its"),
            _ => ("processes", "their"),
        };
        let verb = if its == "its" { "is" } else { "are" };
        Some(format!(
            "{processes} {}{more} {verb} traced by another program: weir has detached, and does not write {its} \
             pending bytes",
            labels.join(", ")
        ))
    }
}

/// The number of processes that the sentence names.
const SHOWN: usize = 4;
