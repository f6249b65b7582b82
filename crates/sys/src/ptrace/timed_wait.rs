//! The timeout of a blocking call that a stop ends with EINTR, and what shows that a thread is still asleep in the same call.

use std::fs;

use crate::memory::{Memory, ProcessMemory};
use crate::proc;

const NS_PER_S: u64 = 1_000_000_000;

/// The relative timeout of a call that the kernel does not resume with the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeout {
    /// The whole timeout, in nanoseconds.
    pub ns: u64,
    /// Result of the call at the timeout.
    pub result: i64,
}

impl WaitTimeout {
    /// Returns the timeout of a thread's call; None for a call without one or of another kind, or if it cannot be read.
    pub fn of(tid: u32, number: i64, args: &[u64; 6]) -> Option<WaitTimeout> {
        const EAGAIN: i64 = -(libc::EAGAIN as i64);
        #[cfg(target_arch = "x86_64")]
        if number == libc::SYS_epoll_wait {
            return in_milliseconds(args[3]);
        }
        let (address, result) = match number {
            libc::SYS_epoll_pwait => return in_milliseconds(args[3]),
            libc::SYS_epoll_pwait2 => (args[3], 0),
            libc::SYS_rt_sigtimedwait => (args[2], EAGAIN),
            libc::SYS_semtimedop => (args[3], EAGAIN),
            _ => return None,
        };
        Some(WaitTimeout { ns: timespec_ns(&ProcessMemory { pid: tid }, address)?, result })
    }
}

/// Returns the timeout of an epoll_wait(2); None for -1, no timeout.
fn in_milliseconds(timeout: u64) -> Option<WaitTimeout> {
    let milliseconds = u64::try_from(timeout as i32).ok()?;
    Some(WaitTimeout { ns: milliseconds * 1_000_000, result: 0 })
}

/// Returns the time in a struct timespec; None at a null pointer, or if it is not readable or not valid.
fn timespec_ns(memory: &dyn Memory, address: u64) -> Option<u64> {
    if address == 0 {
        return None;
    }
    let (seconds, rest_ns) = (memory.u64(address)?, memory.u64(address.checked_add(8)?)?);
    (rest_ns < NS_PER_S).then_some(())?;
    seconds.checked_mul(NS_PER_S)?.checked_add(rest_ns)
}

/// Figures of /proc for a thread that sleeps. They change when the thread has run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SleepMark {
    /// How often the thread has gone to sleep (voluntary context switches).
    pub switches: u64,
    /// The time at which the thread ran last, by the clock of its processor, in nanoseconds (se.exec_start).
    ran_at_ns: u64,
    processor: Option<usize>,
}

impl SleepMark {
    /// Returns the mark of a thread; None if the kernel does not show it (/proc/PID/sched).
    pub fn of(tid: u32) -> Option<SleepMark> {
        let text = fs::read_to_string(format!("/proc/{tid}/sched")).ok()?;
        let (switches, ran_at_ns) = parse(&text)?;
        Some(SleepMark { switches, ran_at_ns, processor: proc::last_processor(tid) })
    }

    /// Returns for how long the thread had slept, at least, before it ran at the time of the mark `later`: 0 if that was on another
    /// processor, whose clock differs. The clocks stop in interrupts, so the time is never too long.
    pub fn slept_ns(&self, later: &SleepMark) -> u64 {
        let is_same_clock = self.processor.is_some() && self.processor == later.processor;
        if is_same_clock { later.ran_at_ns.saturating_sub(self.ran_at_ns) } else { 0 }
    }
}

/// Returns the number of voluntary context switches and se.exec_start in nanoseconds, from the text of /proc/PID/sched.
fn parse(text: &str) -> Option<(u64, u64)> {
    let value = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    };
    let (milliseconds, rest_ns) = value("se.exec_start")?.split_once('.')?;
    let ran_at_ns = milliseconds.parse::<u64>().ok()?.checked_mul(1_000_000)?;
    Some((value("nr_voluntary_switches")?.parse().ok()?, ran_at_ns.checked_add(rest_ns.parse().ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHED: &str = "cat (31017, #threads: 1)
-------------------------------------------------------------------
se.exec_start                                :      60222641.568848
se.vruntime                                  :           314.782636
nr_switches                                  :                    3
nr_voluntary_switches                        :                    2
";

    #[test]
    fn the_time_of_the_last_run_is_read() {
        assert_eq!(parse(SCHED), Some((2, 60_222_641_568_848)));
        assert_eq!(parse(&SCHED.replace("60222641.568848", "0")), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn only_times_of_one_processor_are_compared() {
        let mark = |ran_at_ns, processor| SleepMark { switches: 1, ran_at_ns, processor };
        assert_eq!(mark(100, Some(1)).slept_ns(&mark(350, Some(1))), 250);
        assert_eq!(mark(350, Some(1)).slept_ns(&mark(100, Some(1))), 0);
        assert_eq!(mark(100, Some(1)).slept_ns(&mark(350, Some(0))), 0);
        assert_eq!(mark(100, None).slept_ns(&mark(350, None)), 0);
    }

    #[test]
    fn timeouts_are_read_from_registers_and_memory() {
        let own = std::process::id();
        let of =
            |number, args| WaitTimeout::of(own, number, &args).map(|timeout| (timeout.ns, timeout.result));
        let epoll = |timeout: i32| [3, 0x1000, 8, timeout as u32 as u64, 0, 0];
        assert_eq!(of(libc::SYS_epoll_pwait, epoll(50)), Some((50_000_000, 0)));
        assert_eq!(of(libc::SYS_epoll_pwait, epoll(-1)), None);
        let time = |seconds: u64, ns: u64| Box::new([seconds, ns]);
        let (one, invalid, endless) = (time(1, 5), time(1, NS_PER_S), time(u64::MAX, 0));
        let at = |time: &[u64; 2]| std::ptr::from_ref(time) as u64;
        let again = -i64::from(libc::EAGAIN);
        assert_eq!(of(libc::SYS_rt_sigtimedwait, [1, 0, at(&one), 8, 0, 0]), Some((NS_PER_S + 5, again)));
        assert_eq!(of(libc::SYS_epoll_pwait2, [3, 0, 8, at(&one), 0, 0]), Some((NS_PER_S + 5, 0)));
        assert_eq!(of(libc::SYS_semtimedop, [3, 0, 8, at(&one), 0, 0]), Some((NS_PER_S + 5, again)));
        for address in [0, 8, at(&invalid), at(&endless)] {
            assert_eq!(of(libc::SYS_rt_sigtimedwait, [1, 0, address, 8, 0, 0]), None);
        }
        assert_eq!(of(libc::SYS_read, [0; 6]), None);
    }
}
