//! Letting a busy process run unwatched, and catching it again.
//!
//! A gap begins and ends with the process's totals, so that what was done in it is known though not seen. What
//! has been told of a process, call by call and gap by gap, always adds up to what the kernel counted.

use weir_model::trace::Op;
use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::proc;
use weir_sys::ptrace::interrupt::{PIPE_BUF, may_be_cut_short, may_interrupt};
use weir_sys::ptrace::{self, registers};
use weir_sys::syscalls;
use weir_trace_api::RawEventKind;

use super::tracer::{TracedProcess, Tracer};
use crate::io_account::{counted, most};

/// The first wait until a process that could not be caught is tried again; it doubles.
pub(super) const TRY_NS: u64 = 4_000_000;
const TRY_MOST_NS: u64 = 100_000_000;

/// The most that one call is charged for being late: it may have waited for its own reasons.
const BEYOND_NS: f64 = 5_000_000.0;

/// Calls for which a thread is not interrupted while it runs, after one that must not be.
pub(super) const SHY_CALLS: u32 = 200;

/// Who was seen to open so many files in a burst goes on with it.
const OPENINGS: u32 = 2;

/// Between two glances at those; and the part of the time that they take, one in so many.
const GLANCE_NS: u64 = 200_000;
const GLANCES: u64 = 10;

impl Tracer<'_, '_> {
    pub(super) fn process(&mut self, pid: u32) -> Option<&mut TracedProcess> {
        self.processes.get_mut(&pid)
    }

    /// Stops seeing a process's calls. One of its threads is stopped behind a call.
    pub(super) fn begin_gap(&mut self, pid: u32, now: u64) {
        let Some(process) = self.processes.get_mut(&pid).filter(|process| process.gap.is_none()) else {
            return;
        };
        // With more threads, calls of others may be counted by the kernel and not told yet: what was told
        // counts, then, and the gap takes them.
        if !process.threaded
            && let Some(totals) = process.account.read(pid)
        {
            process.told = totals;
        }
        process.gap = Some(now);
        process.opens = std::mem::take(&mut process.openings) >= OPENINGS;
        process.budget.opens(now, process.opens);
        let (told, seen_since) = (process.told, process.partly_since);
        self.tell(now, pid, pid, RawEventKind::Totals(told));
        // Said at once, as for what was active since the last gap: it may go on unseen, and its end may come first.
        self.tell(seen_since, pid, pid, RawEventKind::Gap { until_ns: seen_since });
        // What other threads did that run unwatched already was no part of it.
        let totals = self.process(pid).and_then(|process| process.account.read(pid)).unwrap_or(told);
        self.tell(now, pid, pid, RawEventKind::GapEdge { totals, ends: false });
    }

    /// Tells of the gap that ends now, if there is one.
    pub(super) fn end_gap(&mut self, pid: u32, now: u64) {
        let Some(since) = self.process(pid).and_then(|process| process.gap.take()) else { return };
        self.tell_unwatched(pid, since, now);
        let totals = self.process(pid).map(|process| process.told).unwrap_or_default();
        self.tell(now, pid, pid, RawEventKind::GapEdge { totals, ends: true });
        if let Some(process) = self.process(pid) {
            process.unwatched_ns += now.saturating_sub(since);
            process.try_ns = TRY_NS;
        }
    }

    fn tell_unwatched(&mut self, pid: u32, since: u64, now: u64) {
        let Some(process) = self.process(pid) else { return };
        process.partly_since = now;
        let totals =
            process.account.read(pid).map(|totals| most(process.told, totals)).unwrap_or(process.told);
        let calls =
            totals.read_calls + totals.write_calls - process.told.read_calls - process.told.write_calls;
        process.bare_ns = Some(now.saturating_sub(since) as f64 / calls.max(1) as f64);
        process.told = totals;
        self.tell(since, pid, pid, RawEventKind::Gap { until_ns: now });
        self.tell(now, pid, pid, RawEventKind::Totals(totals));
    }

    /// Tells what has been done unseen beside the calls that were seen, by threads that could not be caught yet,
    /// and tries again to catch them.
    pub(super) fn tell_partly_unwatched(&mut self, now: u64) {
        let threads = &self.threads;
        let free = |tid: &u32| threads.get(tid).is_some_and(|thread| !thread.watched);
        let partly = |process: &TracedProcess| {
            process.gap.is_none() && !process.hidden && process.threads.iter().any(free)
        };
        let pids: Vec<u32> =
            self.processes.iter().filter(|entry| partly(entry.1)).map(|entry| *entry.0).collect();
        for pid in pids {
            self.tell_rest(pid, now);
            self.catch(pid, now);
        }
    }

    /// Tells the difference between what was told and what the kernel counted, if any.
    pub(super) fn tell_rest(&mut self, pid: u32, now: u64) {
        let Some(process) = self.process(pid).filter(|process| process.threaded) else { return };
        let (told, since) = (process.told, process.partly_since);
        let Some(totals) = process.account.read(pid) else { return };
        if most(told, totals) != told {
            self.tell(since, pid, pid, RawEventKind::Totals(told));
            self.tell_unwatched(pid, since, now);
        }
    }

    /// When this process is to be caught; None: it need not be.
    pub(super) fn catch_at(&self, process: &TracedProcess) -> Option<u64> {
        process.gap?;
        if process.foreign || process.hidden {
            return None;
        }
        let ready = if self.options.exact { 0 } else { process.budget.ready_at(self.stop_cost.call_ns()) };
        Some(ready.max(process.try_at))
    }

    /// When something is to be done about it, if its calls are not seen.
    pub(super) fn wake_at(&self, process: &TracedProcess) -> Option<u64> {
        let at = self.catch_at(process)?;
        Some(if process.opens { at.min(self.glance_at) } else { at })
    }

    /// Has those that open one file after the other looked at while they run: which files these are is not to be told
    /// when they are caught again.
    pub(super) fn glance(&mut self, now: u64) {
        if now < self.glance_at {
            return;
        }
        let opens = |process: &TracedProcess| process.opens && self.catch_at(process).is_some();
        let pids: Vec<u32> =
            self.processes.iter().filter(|entry| opens(entry.1)).map(|entry| *entry.0).collect();
        for pid in pids {
            self.tell(now, pid, pid, RawEventKind::FdSnapshot);
        }
        let took = now_ns().saturating_sub(now);
        self.glance_at = now + (took * GLANCES).max(GLANCE_NS);
    }

    pub(super) fn catch_those_ready(&mut self, now: u64) {
        let due = |process: &TracedProcess| self.catch_at(process).is_some_and(|at| at <= now);
        let pids: Vec<u32> =
            self.processes.iter().filter(|entry| due(entry.1)).map(|entry| *entry.0).collect();
        for pid in pids {
            self.catch(pid, now);
        }
    }

    /// Asks the threads of a process to stop, those that may be asked.
    pub(super) fn catch(&mut self, pid: u32, now: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.try_at = now + process.try_ns;
        process.try_ns = (process.try_ns * 2).min(TRY_MOST_NS);
        let mut watched = false;
        for tid in process.threads.iter() {
            let Some(thread) = self.threads.get_mut(tid).filter(|thread| thread.ending.is_none()) else {
                continue;
            };
            // It has not stopped since the gap began, and is on its way to a stop without being asked.
            watched |= thread.watched;
            let free = !thread.watched && !thread.interrupted;
            if free && may_interrupt(pid, *tid, thread.shy_calls > 0) {
                thread.interrupted = ptrace::interrupt(*tid).is_ok();
            }
        }
        if watched {
            self.end_gap(pid, now);
        }
    }

    /// Undoes what the stop that weir asked for did to the call that it came into: between the look at what a
    /// thread does and the stop, it may have gone into a call that ends with EINTR. It is made again, unless
    /// there is a signal, which would have ended it as well. True: the program does not see that it was broken.
    pub(super) fn mend_call(&mut self, pid: u32, tid: u32) -> bool {
        const EINTR: i64 = -(libc::EINTR as i64);
        const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
        let Some((number, result)) = registers::interrupted_syscall(tid) else { return false };
        let again = result == EINTR && syscalls::can_be_repeated(number);
        if !(again || RESTARTS.contains(&result)) || proc::has_deliverable_signal(tid) {
            return false;
        }
        if again {
            registers::restart_syscall(tid);
        }
        // The kernel counts the attempt as a call, and the one that follows.
        if let (Some(op), Some(process)) = (syscalls::op(number), self.process(pid)) {
            process.account.leave_out(counted(op, result));
        }
        true
    }

    /// A call that a stop would break off: its thread is not interrupted for some time, unless it waits safely.
    pub(super) fn note_shyness(&mut self, tid: u32, number: u64, args: &[u64; 6]) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let op = syscalls::op(number as i64);
        let small = matches!(op, Some(Op::Write)) && args[2] <= PIPE_BUF;
        // Looked up once for many writes, as long as nothing else becomes of the number.
        let known = thread.whole_writes.filter(|&(fd, most)| small && fd == args[0] && args[2] <= most);
        let breaks = known.is_none() && may_be_cut_short(thread.pid, number as i64, args);
        thread.whole_writes = match op {
            Some(Op::Write) if small => known.or((!breaks).then_some((args[0], args[2]))),
            Some(op) if op.reads() || op.writes() || op == Op::Lseek => thread.whole_writes,
            _ => None,
        };
        thread.shy_calls = if breaks { SHY_CALLS } else { thread.shy_calls.saturating_sub(1) };
    }

    /// Charges what a counted call took beyond what it takes unwatched and what its stops were thought to cost:
    /// on a busy machine, the time until the tracer gets a processor.
    pub(super) fn charge_call(&mut self, pid: u32, tid: u32, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let before = thread.returned_ns.replace(now);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if let (Some(before), Some(bare_ns)) = (before, process.bare_ns) {
            let beyond = now.saturating_sub(before) as f64 - bare_ns - self.stop_cost.call_ns();
            process.budget.spend(now, beyond.clamp(0.0, BEYOND_NS), &mut self.purse);
        }
    }

    /// The same for a call that the kernel does not count, on a socket: how long it takes unwatched is not known. The thread
    /// waits for a processor at its stops as long as the tracer does.
    pub(super) fn charge_delay(&mut self, pid: u32, now: u64) {
        let waited = 2.0 * self.delay.since_last_ns() as f64;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.budget.spend(now, waited.min(BEYOND_NS), &mut self.purse);
        }
    }

    /// A stop that has cost `work_ns` since it was seen. The process may have used up what it has.
    pub(super) fn charge(&mut self, pid: u32, seen_ns: u64) -> bool {
        let now = now_ns();
        let worked = self.had_ns.map_or(u64::MAX, |had| thread_cpu_ns().saturating_sub(had));
        let cost = self.stop_cost.stop_ns(now.saturating_sub(seen_ns).min(worked));
        let Some(process) = self.processes.get_mut(&pid) else { return true };
        process.budget.spend(now, cost, &mut self.purse) || self.options.exact
    }
}
