//! Repeats a call that a stop or an ignored signal ended with EINTR, without making its timeout endless.

use crate::clock::now_ns;
use crate::ptrace::registers::{self, SyscallRegisters};
use crate::ptrace::{SyscallStop, syscall_stop};
use crate::{proc, syscalls};

const EINTR: i64 = -(libc::EINTR as i64);

/// The call that a thread has repeated last, and the end of its timeout. Without it, the timeout of a thread that is interrupted
/// at shorter intervals would never end.
#[derive(Debug, Default)]
pub struct RepeatedCall {
    deadline: Option<CallDeadline>,
    /// The argument registers that the program expects at the exit of a call that was repeated with the rest of its timeout.
    expected_args: Option<[u64; 6]>,
    /// The thread was stopped at the exit of the call that it makes again now.
    is_at_repeated_exit: bool,
}

/// A call with a timeout.
#[derive(Debug)]
struct CallDeadline {
    number: i64,
    args: [u64; 6],
    /// CLOCK_MONOTONIC times of the end of the timeout and of the last repetition.
    ends_ns: u64,
    last_ns: u64,
}

/// Returns the call that a stopped thread has just left with EINTR, if it can be made again.
pub fn interrupted_call(tid: u32) -> Option<SyscallRegisters> {
    registers::current_syscall(tid)
        .filter(|call| call.result == EINTR && syscalls::can_be_repeated(call.number))
}

/// Returns whether a stopped thread has just left a call with EINTR that can be made again.
pub fn has_interrupted_call(tid: u32) -> bool {
    interrupted_call(tid).is_some()
}

impl RepeatedCall {
    /// Makes a stopped thread repeat the call that the stop or an ignored signal ended with EINTR, unless another signal
    /// is pending. A call whose timeout has passed meanwhile returns 0 instead, as at a timeout. Returns the call, if there was one.
    /// The wait takes up to twice its timeout: its beginning is not known.
    pub fn repeat(&mut self, tid: u32) -> Option<SyscallRegisters> {
        let call = interrupted_call(tid).filter(|_| !proc::has_deliverable_signal(tid))?;
        match self.rest_ns(call.number, &call.args, 0, now_ns()) {
            Some(0) => drop(registers::set_result(tid, &call.args, 0)),
            _ => registers::restart_syscall(tid),
        }
        Some(call)
    }

    /// As [`RepeatedCall::repeat`], with the rest of the timeout of a call that has waited for at least `waited_ns`. While
    /// [`RepeatedCall::changes_args`] is true, the thread must be resumed to its next system-call stop, and
    /// [`RepeatedCall::restore_at_exit`] called at each of them: the kernel keeps argument registers, and programs may rely on it.
    pub fn repeat_rest(&mut self, tid: u32, waited_ns: u64) -> Option<SyscallRegisters> {
        let mut call = interrupted_call(tid).filter(|_| !proc::has_deliverable_signal(tid))?;
        call.args = self.expected_args.take().unwrap_or(call.args);
        self.is_at_repeated_exit = true;
        match self.rest_ns(call.number, &call.args, waited_ns, now_ns()) {
            Some(0) => drop(registers::set_result(tid, &call.args, 0)),
            Some(rest_ns) => {
                self.expected_args = Some(call.args);
                registers::restart_with(tid, &with_timeout(call.args, rest_ns));
            }
            None => registers::restart_syscall(tid),
        }
        Some(call)
    }

    /// Returns whether the thread makes a call with other arguments than the program's.
    pub fn changes_args(&self) -> bool {
        self.expected_args.is_some()
    }

    /// Notes that the thread is resumed.
    pub fn on_resume(&mut self) {
        self.is_at_repeated_exit = false;
    }

    /// Gives a stopped thread the program's argument registers back if it is at the exit of its call.
    pub fn restore_at_exit(&mut self, tid: u32) {
        if !self.is_at_repeated_exit && matches!(syscall_stop(tid), SyscallStop::Exit { .. }) {
            self.restore_args(tid);
            // A wait that an ignored signal has ended may still be made again.
            if interrupted_call(tid).is_none() {
                self.on_return();
            }
        }
    }

    /// Notes that the program has the result of its call: the next wait has its own timeout, even with the same arguments.
    pub fn on_return(&mut self) {
        self.deadline = None;
    }

    /// Gives a stopped thread the program's argument registers back. A call that it has still to make has its whole timeout again.
    pub fn restore_args(&mut self, tid: u32) {
        if let Some(args) = self.expected_args.take() {
            registers::set_args(tid, &args);
        }
    }

    /// Notes a repetition of a call that has waited for at least `waited_ns`. Returns the rest of its timeout; None for a call
    /// without one.
    fn rest_ns(&mut self, number: i64, args: &[u64; 6], waited_ns: u64, now_ns: u64) -> Option<u64> {
        let timeout_ns = timeout_ns(number, args)?;
        // The call ends at most a timeout after its last repetition.
        let same = self.deadline.take().filter(|call| {
            call.number == number && call.args == *args && now_ns - call.last_ns <= timeout_ns
        });
        let ends_ns = same.map_or((now_ns + timeout_ns).saturating_sub(waited_ns), |call| call.ends_ns);
        let rest_ns = ends_ns.saturating_sub(now_ns);
        if rest_ns > 0 {
            self.deadline = Some(CallDeadline { number, args: *args, ends_ns, last_ns: now_ns });
        }
        Some(rest_ns)
    }
}

/// Returns the arguments of a wait with another timeout, in whole milliseconds: it does not end early.
fn with_timeout(mut args: [u64; 6], timeout_ns: u64) -> [u64; 6] {
    args[3] = timeout_ns.div_ceil(1_000_000);
    args
}

/// Returns whether a call has a timeout that [`RepeatedCall`] keeps over repetitions.
pub fn has_known_timeout(number: i64, args: &[u64; 6]) -> bool {
    timeout_ns(number, args).is_some()
}

/// Returns the timeout of a call that has one as a number of milliseconds and returns 0 at its end.
fn timeout_ns(number: i64, args: &[u64; 6]) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    let waits = matches!(number, libc::SYS_epoll_wait | libc::SYS_epoll_pwait);
    #[cfg(not(target_arch = "x86_64"))]
    let waits = number == libc::SYS_epoll_pwait;
    let milliseconds = u64::try_from(args[3] as i32).ok()?;
    waits.then_some(milliseconds * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn args(timeout_ms: i32) -> [u64; 6] {
        [3, 0x1000, 8, timeout_ms as u32 as u64, 0, 0]
    }

    #[test]
    fn a_timeout_passes_however_often_the_call_is_repeated() {
        let mut call = RepeatedCall::default();
        let mut rest_ns = |ms: u64| call.rest_ns(libc::SYS_epoll_pwait, &args(50), 0, ms * MS);
        assert!((0..50).all(|ms| rest_ns(ms) == Some((50 - ms) * MS)));
        assert_eq!(rest_ns(50), Some(0));
        assert_eq!(rest_ns(51), Some(50 * MS), "the next call");
    }

    #[test]
    fn a_later_call_has_its_own_timeout() {
        let mut call = RepeatedCall::default();
        let mut rest_ns = |timeout, ms: u64| call.rest_ns(libc::SYS_epoll_pwait, &args(timeout), 0, ms * MS);
        assert_eq!(rest_ns(50, 0), Some(50 * MS));
        assert_eq!(rest_ns(50, 51), Some(50 * MS), "the first call has ended");
        assert_eq!(rest_ns(40, 99), Some(40 * MS), "other arguments");
        call.on_return();
        let rest_ns = call.rest_ns(libc::SYS_epoll_pwait, &args(40), 0, 109 * MS);
        assert_eq!(rest_ns, Some(40 * MS), "an event has ended the wait before");
    }

    #[test]
    fn calls_without_a_timeout_are_always_repeated() {
        let mut call = RepeatedCall::default();
        for number in [libc::SYS_epoll_pwait, libc::SYS_read] {
            assert!((0..100).all(|n| call.rest_ns(number, &args(-1), 0, n * 1000 * MS).is_none()));
        }
    }

    #[test]
    fn a_wait_is_repeated_with_the_rest_of_its_timeout() {
        let mut call = RepeatedCall::default();
        let mut rest_ns =
            |waited: u64, ms: u64| call.rest_ns(libc::SYS_epoll_pwait, &args(50), waited * MS, ms * MS);
        assert_eq!(rest_ns(20, 100), Some(30 * MS));
        assert_eq!(rest_ns(0, 120), Some(10 * MS), "the end of the timeout stays");
        assert_eq!(rest_ns(60, 200), Some(0));
        assert_eq!(with_timeout(args(50), 10 * MS + 1), args(11));
    }
}
