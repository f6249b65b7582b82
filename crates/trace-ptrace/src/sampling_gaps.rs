//! Sampling gaps: a busy process runs without stops for a while and is then interrupted for the next sampling window.
//!
//! A gap begins and ends with the process's totals, so the amount of I/O inside it is known. Invariant: the emitted calls
//! and the totals of the gaps always add up to the kernel's counters.

use weir_model::trace::Op;
use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::ptrace::interrupt::{PIPE_BUF, may_be_cut_short, may_interrupt, may_repeat_wait};
use weir_sys::ptrace::{self, registers};
use weir_sys::{proc, process_status, syscalls};
use weir_trace_api::RawEventKind;

use super::tracer::{PtracedProcess, Tracer};
use crate::io_account::{counted, max};

/// The delay before the second attempt to interrupt a process: a few scheduling periods. It doubles with each attempt.
pub(super) const FIRST_RETRY_NS: u64 = 4_000_000;
/// The cap of that delay: a window may be late by a tenth of a second.
const MAX_RETRY_NS: u64 = 100_000_000;
/// The delay from which a short wait is interrupted as well: four attempts, in 60 ms, met the process in such waits only.
const ANY_WAIT_RETRY_NS: u64 = 16 * FIRST_RETRY_NS;

/// The cap of the charge for a late return of one call, which may have blocked for its own reasons.
const MAX_LATENESS_NS: f64 = 5_000_000.0;

/// Calls after a fragile one (see [`may_be_cut_short`]) in which a running thread is not interrupted.
pub(super) const FRAGILE_CALLS: u32 = 200;

/// A process that opens this many files in one sampling window counts as one that opens many.
const MANY_OPENED_FILES: u32 = 2;

/// The shortest interval between fd snapshots of such processes.
const FD_SNAPSHOT_NS: u64 = 200_000;
/// The inverse of the share of time that fd snapshots may take.
const FD_SNAPSHOT_INTERVALS: u64 = 10;

impl Tracer<'_, '_> {
    /// Returns a traced process by its PID.
    pub(super) fn process(&mut self, pid: u32) -> Option<&mut PtracedProcess> {
        self.processes.get_mut(&pid)
    }

    /// Begins a gap of a process unless it is in one. One of its threads is stopped after a call.
    pub(super) fn begin_gap(&mut self, pid: u32, now: u64) {
        let Some(process) = self.processes.get_mut(&pid).filter(|process| process.gap.is_none()) else {
            return;
        };
        // With several threads, the kernel may have counted calls of others that are not emitted yet. Then the emitted
        // totals count, and these calls become part of the gap.
        if !process.threaded
            && let Some(totals) = process.account.read(pid)
        {
            process.reported = totals;
        }
        process.gap = Some(now);
        process.opens_many = std::mem::take(&mut process.opened_files) >= MANY_OPENED_FILES;
        process.budget.set_share(now, process.opens_many);
        let (reported, since) = (process.reported, process.reported_until);
        self.emit(now, pid, pid, RawEventKind::Totals(reported));
        // Announces the gap at once for all streams that are active: the process may end before the gap does.
        self.emit(since, pid, pid, RawEventKind::Gap { until_ns: since });
        // The counts of other threads, which already run without stops, belong to the gap.
        let totals = self.process(pid).and_then(|process| process.account.read(pid)).unwrap_or(reported);
        self.emit(now, pid, pid, RawEventKind::GapEdge { totals, ends: false });
    }

    /// Ends the gap of a process, if it is in one, and emits its totals.
    pub(super) fn end_gap(&mut self, pid: u32, now: u64) {
        let Some(since) = self.process(pid).and_then(|process| process.gap.take()) else { return };
        self.emit_gap(pid, since, now);
        let totals = self.process(pid).map(|process| process.reported).unwrap_or_default();
        self.emit(now, pid, pid, RawEventKind::GapEdge { totals, ends: true });
        if let Some(process) = self.process(pid) {
            process.gap_ns += now.saturating_sub(since);
            process.retry_ns = FIRST_RETRY_NS;
        }
    }

    /// Emits a gap from `since` to `now`, with the totals at both ends.
    fn emit_gap(&mut self, pid: u32, since: u64, now: u64) {
        let Some(process) = self.process(pid) else { return };
        process.reported_until = now;
        let totals =
            process.account.read(pid).map(|totals| max(process.reported, totals)).unwrap_or(process.reported);
        let calls = totals.read_calls + totals.write_calls
            - process.reported.read_calls
            - process.reported.write_calls;
        process.gap_call_ns = Some(now.saturating_sub(since) as f64 / calls.max(1) as f64);
        process.reported = totals;
        self.emit(since, pid, pid, RawEventKind::Gap { until_ns: now });
        self.emit(now, pid, pid, RawEventKind::Totals(totals));
    }

    /// Emits the I/O of threads that still run without stops while others of their process are sampled, and tries again to
    /// interrupt them.
    pub(super) fn emit_untraced_threads(&mut self, now: u64) {
        let threads = &self.threads;
        let is_untraced = |tid: &u32| threads.get(tid).is_some_and(|thread| !thread.syscall_stops);
        let has_untraced = |process: &PtracedProcess| {
            process.gap.is_none() && !process.hidden && process.threads.iter().any(is_untraced)
        };
        let pids: Vec<u32> =
            self.processes.iter().filter(|entry| has_untraced(entry.1)).map(|entry| *entry.0).collect();
        for pid in pids {
            self.emit_uncounted(pid, now);
            self.catch(pid, now);
        }
    }

    /// Emits the difference between the emitted calls and the kernel's counters as a gap, if there is one.
    pub(super) fn emit_uncounted(&mut self, pid: u32, now: u64) {
        let Some(process) = self.process(pid).filter(|process| process.threaded) else { return };
        let (reported, since) = (process.reported, process.reported_until);
        let Some(totals) = process.account.read(pid) else { return };
        if max(reported, totals) != reported {
            self.emit(since, pid, pid, RawEventKind::Totals(reported));
            self.emit_gap(pid, since, now);
        }
    }

    /// Emits the totals of a process that runs on, which no gap and no exit has emitted since the last recorded call.
    pub(super) fn emit_final_totals(&mut self, pid: u32, now: u64) {
        let Some(process) = self.process(pid).filter(|process| process.final_counters.is_none()) else {
            return;
        };
        if let Some(totals) = process.account.read(pid) {
            let totals = max(process.reported, totals);
            self.emit(now, pid, pid, RawEventKind::Totals(totals));
        }
    }

    /// Returns the time of the next attempt to interrupt a process; None if it is in no gap or cannot be sampled.
    pub(super) fn catch_due_at(&self, process: &PtracedProcess) -> Option<u64> {
        process.gap?;
        if process.foreign || process.hidden {
            return None;
        }
        let ready = if self.options.exact { 0 } else { process.budget.ready_at(self.stop_cost.call_ns()) };
        Some(ready.max(process.retry_at))
    }

    /// Returns the time at which a process in a gap needs an attempt to interrupt it or an fd snapshot.
    pub(super) fn next_due_at(&self, process: &PtracedProcess) -> Option<u64> {
        let at = self.catch_due_at(process)?;
        Some(if process.opens_many { at.min(self.fd_snapshot_at) } else { at })
    }

    /// Emits an fd snapshot of each process in a gap that opens many files. Their names are unknown at the end of the gap,
    /// when the files are closed.
    pub(super) fn snapshot_fds(&mut self, now: u64) {
        if now < self.fd_snapshot_at {
            return;
        }
        let is_due = |process: &PtracedProcess| process.opens_many && self.catch_due_at(process).is_some();
        let pids: Vec<u32> =
            self.processes.iter().filter(|entry| is_due(entry.1)).map(|entry| *entry.0).collect();
        for pid in pids.into_iter().filter(|pid| !process_status::is_executing(*pid)) {
            self.emit(now, pid, pid, RawEventKind::FdSnapshot);
        }
        let took = now_ns().saturating_sub(now);
        self.fd_snapshot_at = now + (took * FD_SNAPSHOT_INTERVALS).max(FD_SNAPSHOT_NS);
    }

    /// Interrupts all processes whose gap is over.
    pub(super) fn catch_due(&mut self, now: u64) {
        let due = |process: &PtracedProcess| self.catch_due_at(process).is_some_and(|at| at <= now);
        let pids: Vec<u32> =
            self.processes.iter().filter(|entry| due(entry.1)).map(|entry| *entry.0).collect();
        for pid in pids {
            self.catch(pid, now);
        }
    }

    /// Interrupts the threads of a process for the next sampling window, except those whose system call a stop would change.
    pub(super) fn catch(&mut self, pid: u32, now: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.retry_at = now + process.retry_ns;
        let any_timeout = process.retry_ns >= ANY_WAIT_RETRY_NS;
        process.retry_ns = (process.retry_ns * 2).min(MAX_RETRY_NS);
        let mut has_traced = false;
        for tid in process.threads.iter() {
            let Some(thread) = self.threads.get_mut(tid).filter(|thread| thread.ending.is_none()) else {
                continue;
            };
            // A thread that has not stopped since the gap began will stop without a request.
            has_traced |= thread.syscall_stops;
            let is_untraced = !thread.syscall_stops && !thread.interrupted;
            if is_untraced {
                let state = proc::thread_state(*tid);
                let may_stop = may_interrupt(pid, &state, thread.fragile_calls > 0)
                    || may_repeat_wait(&state, any_timeout);
                thread.interrupted = may_stop && ptrace::interrupt(*tid).is_ok();
            }
        }
        if has_traced {
            self.end_gap(pid, now);
        }
    }

    /// Repeats a call that failed with EINTR because of a requested stop or an ignored signal. Returns true if it will be repeated, so the
    /// program does not see the failure.
    ///
    /// A thread may enter such a call between the check of its state and the stop. The call is not repeated if a signal is
    /// pending, which would have interrupted it as well.
    pub(super) fn repeat_interrupted_call(&mut self, pid: u32, tid: u32) -> bool {
        const EINTR: i64 = -(libc::EINTR as i64);
        let Some((number, result)) = registers::interrupted_syscall(tid) else { return false };
        let must_repeat = result == EINTR && syscalls::can_be_repeated(number);
        if !(must_repeat || syscalls::RESTART_CODES.contains(&result)) || proc::has_deliverable_signal(tid) {
            return false;
        }
        if must_repeat {
            let thread = self.threads.get_mut(&tid);
            let _repeated = thread.and_then(|thread| thread.repeated_call.repeat(tid));
        }
        // The kernel counts both the failed call and its repetition.
        if let (Some(op), Some(process)) = (syscalls::op(number), self.process(pid)) {
            process.account.exclude(counted(op, result));
        }
        true
    }

    /// Notes whether a call is fragile: whether a stop could change its result. After a fragile call, the thread is not
    /// interrupted for some calls unless it blocks in another one.
    pub(super) fn note_fragile_call(&mut self, tid: u32, number: u64, args: &[u64; 6]) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let op = syscalls::op(number as i64);
        let small = matches!(op, Some(Op::Write)) && args[2] <= PIPE_BUF;
        // One check is valid for many writes, as long as the descriptor is not replaced.
        let known = thread.atomic_writes.filter(|&(fd, bytes)| small && fd == args[0] && args[2] <= bytes);
        let is_fragile = known.is_none() && may_be_cut_short(thread.pid, number as i64, args);
        thread.atomic_writes = match op {
            Some(Op::Write) if small => known.or((!is_fragile).then_some((args[0], args[2]))),
            Some(op) if op.reads() || op.writes() || op == Op::Lseek => thread.atomic_writes,
            _ => None,
        };
        thread.fragile_calls =
            if is_fragile { FRAGILE_CALLS } else { thread.fragile_calls.saturating_sub(1) };
    }

    /// Charges the time of a counted call beyond its usual time in a gap and the estimated cost of its stops. On a busy
    /// machine that is the time until the tracer gets a processor.
    pub(super) fn charge_call(&mut self, pid: u32, tid: u32, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let before = thread.returned_ns.replace(now);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if let (Some(before), Some(gap_call_ns)) = (before, process.gap_call_ns) {
            let lateness_ns = now.saturating_sub(before) as f64 - gap_call_ns - self.stop_cost.call_ns();
            process.budget.spend(now, lateness_ns.clamp(0.0, MAX_LATENESS_NS), &mut self.shared_budget);
        }
    }

    /// Charges the scheduling delay of a call that the kernel does not count (on a socket), whose usual time is unknown. At
    /// each of its two stops the thread waits for a processor as long as the tracer does.
    pub(super) fn charge_scheduling_delay(&mut self, pid: u32, now: u64) {
        let waited_ns = 2.0 * self.delay.since_last_ns() as f64;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.budget.spend(now, waited_ns.min(MAX_LATENESS_NS), &mut self.shared_budget);
        }
    }

    /// Charges a stop that the tracer received at `stop_ns`. Returns false if the process has used up its credit.
    pub(super) fn charge(&mut self, pid: u32, stop_ns: u64) -> bool {
        let now = now_ns();
        let cpu_ns = self.cpu_at_stop_ns.map_or(u64::MAX, |before| thread_cpu_ns().saturating_sub(before));
        let cost = self.stop_cost.stop_ns(now.saturating_sub(stop_ns).min(cpu_ns));
        self.switches_ns += self.stop_cost.stop_ns(0);
        let Some(process) = self.processes.get_mut(&pid) else { return true };
        process.budget.spend(now, cost, &mut self.shared_budget) || self.options.exact
    }
}
