//! Reads clocks, with times in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// Returns the time by CLOCK_MONOTONIC, the clock of every event.
pub fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Returns the CPU time that the calling thread has used.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Returns the time of a clock, by clock_gettime(2).
pub fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
