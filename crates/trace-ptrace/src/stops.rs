//! What a stop of a thread means, and how it goes on.

use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop, SyscallStop};
use weir_sys::{proc, syscalls};
use weir_trace_api::{RawEventKind, breakpoint_traps};

use super::tracer::{TracedProcess, Tracer};
use crate::io_account::{counted, plus};
use crate::syscalls::EnteredCall;

/// A system call stop, with PTRACE_O_TRACESYSGOOD.
const CALL: i32 = libc::SIGTRAP | 0x80;

/// So many of a thread's writes are looked ahead of.
pub(super) const FIRST_WRITES: u32 = 4;

impl Tracer<'_, '_> {
    /// Handles it and lets the thread go on. Returns when the next thing is due, if that is sooner than before.
    pub(super) fn on_stop(&mut self, stop: PtraceStop) -> Option<u64> {
        let now = now_ns();
        let PtraceStop { tid, status } = stop;
        if !libc::WIFSTOPPED(status) {
            self.gone(tid, status, now);
            return None;
        }
        let Some(thread) = self.threads.get_mut(&tid) else {
            self.early.insert(tid, (stop, now));
            return Some(now);
        };
        if thread.watched && thread.let_go_ns > 0 {
            self.stop_cost.away(now.saturating_sub(thread.let_go_ns));
        }
        if let Some(tracer) = thread.let_go_for {
            self.let_go(tid, tracer, status);
            return None;
        }
        let pid = thread.pid;
        let asked = std::mem::take(&mut thread.interrupted);
        // Until it runs unwatched for the first time: a short program is seen whole, however busy the machine is.
        let starts = self.processes.get(&pid).is_some_and(|process| process.bare_ns.is_none());
        self.had_ns = starts.then(thread_cpu_ns);
        match (libc::WSTOPSIG(status), status >> 16) {
            (CALL, 0) => self.on_call(tid, asked, now),
            (signal, 0) => self.on_signal(tid, pid, signal, now),
            (_, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                self.on_birth(tid, status >> 16, now);
            }
            (_, libc::PTRACE_EVENT_SECCOMP) => self.on_filtered(tid, pid, now),
            (_, libc::PTRACE_EVENT_EXEC) => self.on_exec(tid, now),
            (_, libc::PTRACE_EVENT_EXIT) => self.on_exit(tid, now),
            (libc::SIGTRAP, EVENT_STOP) => self.on_trap(tid, asked, now),
            (_, EVENT_STOP) => {
                thread.watched = false;
                ptrace::listen(tid);
            }
            _ => self.go_on(tid, 0, now),
        }
        self.processes.get(&pid).and_then(|process| self.wake_at(process))
    }

    /// A signal is about to be delivered, and is.
    fn on_signal(&mut self, tid: u32, pid: u32, signal: i32, now: u64) {
        if signal == libc::SIGSTOP {
            self.expect_tracer(pid, now);
        }
        if signal == breakpoint_traps::SIGNAL && self.begins(tid, pid) {
            // The look at its beginning comes once: a short program is not to be left unseen for what that took.
            return self.go_on(tid, 0, now_ns());
        }
        self.go_on(tid, signal, now);
    }

    /// The stop that was asked for, the first of a new thread, or the one that SIGCONT makes.
    fn on_trap(&mut self, tid: u32, asked: bool, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        // It is on its way back to the program, whatever call it was in.
        thread.in_call = false;
        let pid = thread.pid;
        if asked {
            self.mend_call(pid, tid);
            self.end_gap(pid, now);
        }
        self.go_on(tid, 0, now);
    }

    /// Lets a stopped thread run, watched or not as its process is now.
    pub(super) fn go_on(&mut self, tid: u32, signal: i32, seen_ns: u64) {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return };
        let affordable = self.charge(pid, seen_ns);
        let inside = self.threads.get(&tid).is_some_and(|thread| thread.inside.is_some());
        if !affordable && !inside {
            self.begin_gap(pid, now_ns());
        }
        let watched = !self.closing() && !self.processes.get(&pid).is_none_or(TracedProcess::unseen);
        // A filter stops it at the next call by itself, and does not see the end of this one.
        let to_its_stop = watched && (!self.filtered || inside);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.watched = watched;
            if !watched {
                thread.in_call = false;
                (thread.inside, thread.returned_ns) = (None, None);
            }
            thread.let_go_ns = now_ns();
        }
        ptrace::resume(tid, to_its_stop, signal);
    }

    /// If it was `asked` to stop, this stop is the answer: the kernel takes back the request at any stop.
    fn on_call(&mut self, tid: u32, asked: bool, now: u64) {
        let side = ptrace::syscall_stop(tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.in_call = matches!(side, SyscallStop::Entry { .. });
        }
        match side {
            SyscallStop::Entry { arch, number, args } => {
                if self.on_entry(tid, arch, number, args, now) {
                    return;
                }
            }
            SyscallStop::Exit { .. } if asked && self.mend_at_exit(tid) => {}
            SyscallStop::Exit { result } => self.on_return(tid, result, now),
            SyscallStop::Filtered { .. } | SyscallStop::Other => {}
        }
        self.go_on(tid, 0, now);
    }

    /// True: the call that ends here was broken off by weir, and is made again.
    fn mend_at_exit(&mut self, tid: u32) -> bool {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return false };
        let mended = self.mend_call(pid, tid);
        if let Some(thread) = self.threads.get_mut(&tid).filter(|_| mended) {
            thread.inside = None;
        }
        mended
    }

    /// True: the thread stays stopped, or was let go for good.
    pub(super) fn on_entry(&mut self, tid: u32, arch: u32, number: u64, args: [u64; 6], now: u64) -> bool {
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
            self.note_shyness(tid, number, &args);
        }
        if self.options.every_call || self.is_first_write(tid, number as i64) {
            self.look_before(pid, tid, number as i64, now);
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

    /// Something else may be written before what waits in a buffer: see finding mixed-order.
    fn is_first_write(&mut self, tid: u32, number: i64) -> bool {
        let writes = syscalls::op(number).is_some_and(weir_model::trace::Op::writes);
        let Some(thread) = self.threads.get_mut(&tid).filter(|_| writes) else { return false };
        let is = thread.looked_before < FIRST_WRITES;
        thread.looked_before += u32::from(is);
        is
    }

    fn on_return(&mut self, tid: u32, result: i64, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.before_exec = None;
        let (pid, Some(inside)) = (thread.pid, thread.inside.take()) else { return };
        // Another thread has begun a gap, whose totals have this call.
        let Some(process) = self.process(pid).filter(|process| process.gap.is_none()) else { return };
        process.openings += u32::from(result >= 0 && inside.op.opens());
        let counts = counted(inside.op, result);
        process.told = plus(process.told, counts);
        if counts.read_calls + counts.write_calls > 0 {
            self.charge_call(pid, tid, now);
        } else if inside.op.reads() || inside.op.writes() {
            self.charge_delay(pid, now);
        }
        let call = inside.leave(tid, result);
        self.seen_calls += 1;
        self.tell(now, pid, tid, RawEventKind::Call(call));
    }

    /// Its calls have other numbers: only its totals are kept.
    pub(super) fn make_foreign(&mut self, pid: u32, label: &str) {
        if let Some(process) = self.process(pid).filter(|process| !process.foreign) {
            process.foreign = true;
            self.blind.insert(format!(
                "{label} runs code of another architecture (32-bit): only its totals are known"
            ));
        }
    }
}
