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

/// Returns the CPU time of all threads of a process; 0 if it is gone or its time may not be read.
pub fn process_cpu_ns(pid: u32) -> u64 {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: the calls fill locals of the types that they need.
    let is_read = unsafe {
        libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    if is_read { time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 } else { 0 }
}

/// Returns the user and system CPU time that this process has used, in seconds, by getrusage(2).
pub fn own_cpu_seconds() -> (f64, f64) {
    cpu_seconds(libc::RUSAGE_SELF)
}

/// Returns the user and system CPU time of all children that have ended and were waited for, in seconds.
pub fn children_cpu_seconds() -> (f64, f64) {
    cpu_seconds(libc::RUSAGE_CHILDREN)
}

fn cpu_seconds(of: libc::c_int) -> (f64, f64) {
    // SAFETY: zero bytes are a valid rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}
