//! Repeats a call that a stop or an ignored signal ended with EINTR, without making its timeout endless.

use crate::clock::now_ns;
use crate::ptrace::registers::{self, SyscallRegisters};
use crate::{proc, syscalls};

const EINTR: i64 = -(libc::EINTR as i64);

/// The call with a timeout that a thread has repeated last. Without it, a thread that is interrupted more often than its
/// timeout would never see the timeout.
#[derive(Debug, Default)]
pub struct RepeatedCall(Option<TimedCall>);

#[derive(Debug)]
struct TimedCall {
    number: i64,
    args: [u64; 6],
    /// CLOCK_MONOTONIC times of the first and of the last repetition.
    first_ns: u64,
    last_ns: u64,
}

/// Returns the call that a stopped thread has just left with EINTR, if it can be made again.
fn interrupted_call(tid: u32) -> Option<SyscallRegisters> {
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
    pub fn repeat(&mut self, tid: u32) -> Option<SyscallRegisters> {
        let call = interrupted_call(tid).filter(|_| !proc::has_deliverable_signal(tid))?;
        if self.has_timed_out(call.number, &call.args, now_ns()) {
            registers::set_result(tid, &call.args, 0);
        } else {
            registers::restart_syscall(tid);
        }
        Some(call)
    }

    /// Notes a repetition. Returns true if the timeout has passed since the first repetition of this call.
    fn has_timed_out(&mut self, number: i64, args: &[u64; 6], now_ns: u64) -> bool {
        let Some(timeout_ns) = timeout_ns(number, args) else { return false };
        // The call began before its first repetition, and ends at most a timeout after the last one.
        let same = self.0.take().filter(|call| {
            call.number == number && call.args == *args && now_ns - call.last_ns <= timeout_ns
        });
        let first_ns = same.map_or(now_ns, |call| call.first_ns);
        let passed = now_ns - first_ns >= timeout_ns;
        if !passed {
            self.0 = Some(TimedCall { number, args: *args, first_ns, last_ns: now_ns });
        }
        passed
    }
}

/// Returns whether a call has a timeout that [`RepeatedCall`] keeps over repetitions.
pub(super) fn has_known_timeout(number: i64, args: &[u64; 6]) -> bool {
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
        let repeats = (0..100).take_while(|n| !call.has_timed_out(libc::SYS_epoll_pwait, &args(50), n * MS));
        assert_eq!(repeats.count(), 50);
        assert!(!call.has_timed_out(libc::SYS_epoll_pwait, &args(50), 51 * MS), "the next call");
    }

    #[test]
    fn a_later_call_has_its_own_timeout() {
        let mut call = RepeatedCall::default();
        assert!(!call.has_timed_out(libc::SYS_epoll_pwait, &args(50), 0));
        assert!(!call.has_timed_out(libc::SYS_epoll_pwait, &args(50), 51 * MS), "the first call has ended");
        assert!(!call.has_timed_out(libc::SYS_epoll_pwait, &args(40), 99 * MS), "other arguments");
    }

    #[test]
    fn calls_without_a_timeout_are_always_repeated() {
        let mut call = RepeatedCall::default();
        for number in [libc::SYS_epoll_pwait, libc::SYS_read] {
            assert!((0..100).all(|n| !call.has_timed_out(number, &args(-1), n * 1000 * MS)));
        }
    }
}
