//! Ends waits with a timeout that a stop has interrupted at the time at which they would have ended without weir.
//!
//! The repeated call gets its whole timeout again, because its arguments stay the program's. So weir notes when the timeout ends and
//! whether the thread sleeps in the call, and ends the wait with another stop. A wait is the noted one only if the thread has not
//! run since.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_sys::clock::now_ns;
use weir_sys::executable;
use weir_sys::proc::{self, ThreadState};
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_sys::ptrace::repeat::interrupted_call;
use weir_sys::ptrace::timed_wait::{SleepMark, WaitTimeout};
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop, SyscallStop};
use weir_sys::syscalls;

/// The longest wait for the stop of a thread, which needs a processor on a busy machine.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);
/// The longest wait until a thread that has entered its call sleeps in it.
const SLEEP_TIMEOUT: Duration = Duration::from_millis(20);
/// The pause between two polls for a stop or that sleep: a thread falls asleep within microseconds.
const POLL: Duration = Duration::from_micros(50);

/// A wait with a timeout that a stop has interrupted and that is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TimedWait {
    tid: u32,
    number: i64,
    args: [u64; 6],
    /// The end of the timeout (CLOCK_MONOTONIC).
    pub ends_ns: u64,
    /// How often the thread had gone to sleep when it slept in this wait.
    switches: u64,
}

impl TimedWait {
    /// Returns whether the thread sleeps in this wait.
    fn is_current(&self) -> bool {
        let waits = ThreadState::Waiting { number: self.number, args: self.args };
        proc::thread_state(self.tid) == waits
            && SleepMark::of(self.tid).is_some_and(|mark| mark.switches == self.switches)
    }
}

/// A thread before its stop.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BeforeStop {
    mark: Option<SleepMark>,
    /// The end of the wait in which it sleeps, if weir has noted it.
    ends_ns: Option<u64>,
}

impl BeforeStop {
    /// Reads what a thread does. `known` has the noted waits of its process.
    pub fn of(tid: u32, known: &[TimedWait]) -> BeforeStop {
        let wait = known.iter().find(|wait| wait.tid == tid).filter(|wait| wait.is_current());
        BeforeStop { mark: SleepMark::of(tid), ends_ns: wait.map(|wait| wait.ends_ns) }
    }
}

/// A call that a stopped thread makes again.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepeatedWait {
    number: i64,
    args: [u64; 6],
    ends_ns: u64,
}

/// Makes a stopped thread repeat the call that the stop has ended with EINTR, unless a signal is pending. A wait whose timeout has passed
/// returns instead. Returns the repeated call if it has a timeout.
pub(super) fn repeat(tid: u32, before: BeforeStop) -> Option<RepeatedWait> {
    let call = interrupted_call(tid).filter(|_| !proc::has_deliverable_signal(tid))?;
    let SyscallRegisters { number, args, .. } = call;
    let timeout = WaitTimeout::of(tid, number, &args);
    let now = now_ns();
    let marks = before.mark.zip(SleepMark::of(tid));
    // The stop itself is one sleep. After another one the wait is a new one.
    let (slept_ns, noted_ns) = match marks.filter(|(mark, later)| later.switches == mark.switches + 1) {
        Some((mark, later)) => (mark.slept_ns(&later), before.ends_ns),
        None => (0, None),
    };
    let ends_ns = timeout
        .map(|timeout| noted_ns.unwrap_or_else(|| now.saturating_add(timeout.ns).saturating_sub(slept_ns)));
    match timeout.zip(ends_ns) {
        Some((timeout, ends_ns)) if ends_ns <= now => {
            registers::set_result(tid, &args, timeout.result);
            None
        }
        _ => {
            registers::restart_syscall(tid);
            ends_ns.map(|ends_ns| RepeatedWait { number, args, ends_ns })
        }
    }
}

/// Resumes stopped threads into the calls that they repeat. Returns the waits in which they sleep then. The end of the calling
/// thread detaches from them.
pub(super) fn resume_into(repeated: &[(u32, RepeatedWait)]) -> Vec<TimedWait> {
    // Without a signal, the next stop is at the entry of the repeated call.
    repeated.iter().for_each(|(tid, _)| ptrace::resume(*tid, true, 0));
    let deadline = Instant::now() + STOP_TIMEOUT;
    repeated.iter().filter_map(|(tid, wait)| sleeping_wait(*tid, *wait, deadline)).collect()
}

/// Waits until a thread sleeps in the call that it repeats. Returns None if the call returns at once, or at another stop.
fn sleeping_wait(tid: u32, wait: RepeatedWait, deadline: Instant) -> Option<TimedWait> {
    let stop = stop_before(tid, deadline)?;
    let is_entry = matches!(
        ptrace::syscall_stop(tid),
        SyscallStop::Entry { number, args, .. } if number as i64 == wait.number && args == wait.args
    );
    let Some(entered) = SleepMark::of(tid).filter(|_| is_entry) else {
        detach(stop);
        return None;
    };
    ptrace::resume(tid, true, 0);
    let deadline = Instant::now() + SLEEP_TIMEOUT;
    let noted = TimedWait {
        tid,
        number: wait.number,
        args: wait.args,
        ends_ns: wait.ends_ns,
        switches: entered.switches + 1,
    };
    loop {
        match ptrace::try_wait_for(tid) {
            Ok(Some(stop)) => {
                detach(stop);
                return None;
            }
            Err(_) => return None,
            Ok(None) => {}
        }
        // A thread that goes to sleep has counted it.
        if noted.is_current() {
            return Some(noted);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL);
    }
}

/// Returns the next stop of a tracee; None if it ends, or at the deadline.
fn stop_before(tid: u32, deadline: Instant) -> Option<PtraceStop> {
    loop {
        match ptrace::try_wait_for(tid) {
            Ok(Some(stop)) => return libc::WIFSTOPPED(stop.status).then_some(stop),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            _ => return None,
        }
    }
}

/// Detaches from a stopped tracee, and delivers the signal of its stop.
fn detach(stop: PtraceStop) {
    let signal = libc::WSTOPSIG(stop.status);
    let has_signal = stop.status >> 16 == 0 && signal != libc::SIGTRAP | 0x80;
    if has_signal && proc::ignores(stop.tid, signal) {
        repeat(stop.tid, BeforeStop::default());
    }
    let_go(stop.tid, if has_signal { signal } else { 0 });
}

/// Resumes a stopped thread, and detaches from it: at the entry of a call only when the calling thread ends, because a detach there wakes
/// the thread like a signal, and some calls then fail with EINTR. From a thread that executes a program it detaches before the call if
/// a set-user-ID program would lose its privilege: execve(2) waits for no signal, except on a file system in user space.
pub(super) fn let_go(tid: u32, signal: i32) {
    let takes_privilege = |number: u64| executable::takes_privilege() && syscalls::executes(number as i64);
    match ptrace::syscall_stop(tid) {
        SyscallStop::Entry { number, .. } if signal == 0 && !takes_privilege(number) => {
            ptrace::resume(tid, false, 0);
        }
        SyscallStop::Filtered { .. } if signal == 0 => ptrace::resume(tid, false, 0),
        _ => ptrace::detach(tid, signal),
    }
}

/// Ends the waits whose timeout has passed, as at a timeout. The end of the calling thread detaches from tracees that have not stopped.
pub(super) fn end_due(process: ProcessIdentity, waits: &[TimedWait]) {
    for wait in waits.iter().filter(|wait| wait.ends_ns <= now_ns()) {
        let tid = wait.tid;
        let before = BeforeStop::of(tid, waits);
        if before.ends_ns.is_none() {
            continue;
        }
        // No work between seize and interrupt: a traced set-user-ID execve(2) would run without its privilege.
        let requested = ptrace::seize_for_syscalls(tid).and_then(|()| ptrace::interrupt(tid)).is_ok();
        let stop = requested.then(|| stop_before(tid, Instant::now() + STOP_TIMEOUT)).flatten();
        let Some(stop) = stop else { continue };
        let is_requested = stop.status >> 16 == EVENT_STOP && libc::WSTOPSIG(stop.status) == libc::SIGTRAP;
        if is_requested && proc::process_of(tid) == Some(process.pid()) {
            repeat(tid, before);
        }
        detach(stop);
    }
}
