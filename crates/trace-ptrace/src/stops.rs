//! Handles the stops of tracees (ptrace(2), "Stopped states") and resumes them.

use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop, SyscallStop, registers};
use weir_sys::{held_signals, proc, syscalls};
use weir_trace_api::{RawCall, RawEventKind, breakpoint_traps};

use super::held_exits::RETRY_NS;
use super::tracer::{PtracedProcess, Tracer};
use crate::io_account::{counted, plus};
use crate::syscalls::{EnteredCall, visible_result};

/// The stop signal of a syscall stop with PTRACE_O_TRACESYSGOOD.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// A call that takes less than this between its stops may have worked all the time: it is the time of a large write(2), and more
/// than the usual delay of a stop.
const MIN_BLOCKED_NS: f64 = 50_000.0;

/// The writes of each thread that a buffer snapshot precedes: ordering mistakes show in the first few.
pub(super) const FIRST_WRITES: u32 = 4;

impl Tracer<'_, '_> {
    /// Handles a stop and resumes the thread. Returns the time at which its process needs attention, if any.
    pub(super) fn on_stop(&mut self, stop: PtraceStop) -> Option<u64> {
        let now = now_ns();
        let PtraceStop { tid, status, cpu_ns } = stop;
        if !libc::WIFSTOPPED(status) {
            self.on_thread_end(tid, status, now);
            return None;
        }
        let Some(thread) = self.threads.get_mut(&tid) else {
            self.early.insert(tid, (stop, now));
            return Some(now);
        };
        let before_ns = std::mem::replace(&mut thread.cpu_ns, cpu_ns);
        thread.resumed_cpu_ns = (before_ns > 0).then(|| cpu_ns.saturating_sub(before_ns));
        if thread.syscall_stops && thread.resumed_ns > 0 {
            self.stop_cost.record_round_trip(now.saturating_sub(thread.resumed_ns));
        }
        if let Some(tracer) = thread.detach_for {
            self.detach_for_tracer(tid, tracer, status);
            return None;
        }
        let pid = thread.pid;
        let was_requested = std::mem::take(&mut thread.interrupted);
        // The kernel drops a request at the entry of a call, but still ends the call with EINTR. A second request brings a
        // stop at which the call can be repeated.
        thread.interrupted = was_requested && ptrace::at_syscall_entry(tid) && ptrace::interrupt(tid).is_ok();
        // Before its first gap, a process is charged CPU time instead of elapsed time, so a short program is recorded
        // completely, however busy the machine is.
        let is_start = self.processes.get(&pid).is_some_and(|process| process.gap_call_ns.is_none());
        self.cpu_at_stop_ns = is_start.then(thread_cpu_ns);
        match (libc::WSTOPSIG(status), status >> 16) {
            (SYSCALL_STOP, 0) => self.on_syscall_stop(tid, was_requested, now),
            (signal, 0) => self.on_signal(tid, pid, signal, now),
            (_, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                self.on_clone(tid, status >> 16, now);
            }
            (_, libc::PTRACE_EVENT_SECCOMP) => self.on_seccomp_stop(tid, pid, now),
            (_, libc::PTRACE_EVENT_EXEC) => self.on_exec(tid, now),
            (_, libc::PTRACE_EVENT_EXIT) => self.on_exit(tid, now),
            (libc::SIGTRAP, EVENT_STOP) => self.on_event_stop(tid, was_requested, now),
            (_, EVENT_STOP) => {
                thread.syscall_stops = false;
                ptrace::listen(tid);
            }
            _ => self.resume(tid, 0, now),
        }
        let catch = self.processes.get(&pid).and_then(|process| self.next_due_at(process));
        self.held_exits.first().map(|_| now + RETRY_NS).into_iter().chain(catch).min()
    }

    /// Handles a signal-delivery stop. The signal is delivered, except that of a breakpoint.
    fn on_signal(&mut self, tid: u32, pid: u32, signal: i32, now: u64) {
        if pid == self.root {
            held_signals::note_stop(tid, signal);
        }
        if signal == libc::SIGSTOP {
            self.catch_parent(pid, now);
        }
        if signal == breakpoint_traps::SIGNAL && self.on_entry_breakpoint(tid, pid) {
            // The snapshot at the start comes once, so it is not charged to the process.
            return self.resume(tid, 0, now_ns());
        }
        // Without a tracer an ignored signal is not delivered and ends no call.
        if registers::interrupted_syscall(tid).is_some() && proc::ignores(tid, signal) {
            self.repeat_interrupted_call(pid, tid);
        }
        self.resume(tid, signal, now);
    }

    /// Handles PTRACE_EVENT_STOP with SIGTRAP: a requested stop, the first stop of a new thread, or the one after SIGCONT.
    fn on_event_stop(&mut self, tid: u32, was_requested: bool, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        // The thread is returning to user mode, from any call.
        thread.in_call = false;
        let pid = thread.pid;
        if was_requested {
            self.repeat_interrupted_call(pid, tid);
            self.end_gap(pid, now);
        }
        self.resume(tid, 0, now);
    }

    /// Charges a stop that the tracer received at `stop_ns` and resumes the thread, with syscall stops unless its process is
    /// in a gap.
    pub(super) fn resume(&mut self, tid: u32, signal: i32, stop_ns: u64) {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return };
        let affordable = self.charge(pid, stop_ns);
        let inside = self.threads.get(&tid).is_some_and(|thread| thread.inside.is_some());
        if !affordable && !inside {
            self.begin_gap(pid, now_ns());
        }
        let syscall_stops =
            !self.closing() && !self.processes.get(&pid).is_none_or(PtracedProcess::is_unobserved);
        // A filter stops the thread at the entry of the next call, but not at the exit of this one.
        let to_syscall = syscall_stops && (!self.filtered || inside);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.syscall_stops = syscall_stops;
            if !syscall_stops {
                thread.in_call = false;
                (thread.inside, thread.returned_ns) = (None, None);
            }
            thread.resumed_ns = now_ns();
            thread.to_syscall = to_syscall;
        }
        if !self.was_killed_in_stop(pid, tid) {
            ptrace::resume(tid, to_syscall, signal);
        }
    }

    /// Returns whether another thread's exit_group(2) has ended the stop that weir handles: the thread is in its exit stop already.
    /// Resuming it now would hide that stop, and with it perhaps the last moment at which the memory can be read.
    fn was_killed_in_stop(&self, pid: u32, tid: u32) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.threads.len() > 1) && ptrace::has_stop(tid)
    }

    /// Handles a syscall stop. If a stop `was_requested`, this one replaces it: the kernel drops the request at any stop.
    fn on_syscall_stop(&mut self, tid: u32, was_requested: bool, now: u64) {
        let stop = ptrace::syscall_stop(tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.in_call = matches!(stop, SyscallStop::Entry { .. });
        }
        match stop {
            SyscallStop::Entry { arch, number, args } => {
                self.record_delay(tid, now);
                if self.on_syscall_entry(tid, arch, number, args, now) {
                    return;
                }
            }
            // Without a tracer, an ignored signal that another thread takes would not have ended the wait.
            SyscallStop::Exit { result }
                if (was_requested || is_interrupted_wait(tid, result)) && self.repeat_at_exit(tid) => {}
            SyscallStop::Exit { result } => self.on_syscall_exit(tid, visible_result(result), now),
            SyscallStop::Filtered { .. } | SyscallStop::Other => {}
        }
        self.resume(tid, 0, now);
    }

    /// Repeats the call of a syscall-exit stop if weir or an ignored signal interrupted it. Returns whether it does.
    fn repeat_at_exit(&mut self, tid: u32) -> bool {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return false };
        let repeats = self.repeat_interrupted_call(pid, tid);
        if let Some(thread) = self.threads.get_mut(&tid).filter(|_| repeats) {
            thread.inside = None;
        }
        repeats
    }

    /// Handles a syscall-entry stop. Returns true if the thread must not be resumed: it stays stopped or is detached.
    pub(super) fn on_syscall_entry(
        &mut self,
        tid: u32,
        arch: u32,
        number: u64,
        args: [u64; 6],
        now: u64,
    ) -> bool {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return false };
        if syscalls::is_foreign(arch, number) {
            self.make_foreign(pid, &proc::label(pid));
            self.begin_gap(pid, now);
            return false;
        }
        if number as i64 == libc::SYS_ptrace {
            return self.on_ptrace(tid, args);
        }
        if !self.options.exact {
            self.note_fragile_call(tid, number, &args);
        }
        if self.options.every_call || self.is_first_write(tid, number as i64) {
            self.snapshot_before_call(pid, tid, number as i64, now);
        }
        let Some(op) = syscalls::op(number as i64) else { return false };
        if matches!(op, weir_model::trace::Op::Execve | weir_model::trace::Op::Execveat) {
            self.before_exec(tid, pid, now);
        }
        let inside = EnteredCall::enter(tid, op, args, now);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.inside = Some(inside);
        }
        false
    }

    /// Counts the first writes of a thread, which may overtake pending bytes (finding mixed-order). Returns whether this
    /// call is one of them.
    fn is_first_write(&mut self, tid: u32, number: i64) -> bool {
        let writes = syscalls::op(number).is_some_and(weir_model::trace::Op::writes);
        let Some(thread) = self.threads.get_mut(&tid).filter(|_| writes) else { return false };
        let is_first = thread.first_writes < FIRST_WRITES;
        thread.first_writes += u32::from(is_first);
        is_first
    }

    /// Handles a syscall-exit stop: counts, charges and emits the call.
    pub(super) fn on_syscall_exit(&mut self, tid: u32, result: i64, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.before_exec = None;
        thread.repeated_call.on_return();
        let (pid, Some(inside)) = (thread.pid, thread.inside.take()) else { return };
        // If another thread has begun a gap, its totals include this call.
        let Some(process) = self.process(pid).filter(|process| process.gap.is_none()) else { return };
        process.opened_files += u32::from(result >= 0 && inside.op.opens());
        let counts = counted(inside.op, result);
        process.reported = plus(process.reported, counts);
        if counts.read_calls + counts.write_calls > 0 {
            self.charge_call(pid, tid, now);
        } else if inside.op.reads() || inside.op.writes() {
            self.charge_scheduling_delay(pid, now);
        }
        let blocked_ns = self.blocked_ns(tid, &inside, now);
        let call = RawCall { blocked_ns, ..inside.leave(tid, result) };
        self.observed_calls += 1;
        self.emit(now, pid, tid, RawEventKind::Call(call));
    }

    /// Returns the time from the last resumption of a thread to its stop at `now` without its CPU time; None if that is unknown,
    /// as with several threads.
    fn resumed_idle_ns(&self, tid: u32, now: u64) -> Option<f64> {
        let thread = self.threads.get(&tid)?;
        let is_alone = self.processes.get(&thread.pid).is_some_and(|process| !process.threaded);
        let cpu_ns = thread.resumed_cpu_ns.filter(|_| is_alone && thread.resumed_ns > 0)?;
        Some(now.saturating_sub(thread.resumed_ns) as f64 - cpu_ns as f64)
    }

    /// Records the delay of a stop at the entry of a call, if no call that does not stop came before it.
    fn record_delay(&mut self, tid: u32, now: u64) {
        if self.threads.get(&tid).is_some_and(|thread| thread.to_syscall)
            && let Some(ns) = self.resumed_idle_ns(tid, now)
        {
            self.stop_delay.record(ns);
        }
    }

    /// Returns for how long a call that moves bytes blocked: the time from its entry to its exit, without its CPU time and the
    /// delay of the stop. If these are unknown, returns 0 for a time in which the call may have worked.
    fn blocked_ns(&mut self, tid: u32, call: &EnteredCall, now: u64) -> Option<u64> {
        if !(call.op.reads() || call.op.writes()) {
            return None;
        }
        let idle_ns = self.resumed_idle_ns(tid, now);
        let resumed_ns = self.threads.get(&tid).map_or(now, |thread| thread.resumed_ns);
        let thread = self.threads.get_mut(&tid);
        let blocked =
            idle_ns.zip(thread).map(|(ns, thread)| self.stop_delay.blocked_ns(ns, &mut thread.ahead));
        blocked.flatten().or_else(|| {
            let beyond_ns = now.saturating_sub(resumed_ns) as f64 - self.stop_cost.stop_ns(0);
            Some(if beyond_ns >= MIN_BLOCKED_NS { beyond_ns as u64 } else { 0 })
        })
    }

    /// Marks a process as foreign: its system call numbers are unknown, so only its totals are recorded.
    pub(super) fn make_foreign(&mut self, pid: u32, label: &str) {
        if let Some(process) = self.process(pid).filter(|process| !process.foreign) {
            process.foreign = true;
            self.blind_spots.insert(format!(
                "{label} runs code of another architecture (32-bit): only its totals are known"
            ));
        }
    }
}

/// Returns whether a thread at its syscall-exit stop has left a wait with EINTR that only a signal causes. False for reads and writes:
/// the server of a FUSE file can make each of them fail with EINTR.
fn is_interrupted_wait(tid: u32, result: i64) -> bool {
    result == -i64::from(libc::EINTR)
        && registers::interrupted_syscall(tid).is_some_and(|(number, _)| syscalls::op(number).is_none())
}
