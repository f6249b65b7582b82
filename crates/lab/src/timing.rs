//! Measures the elapsed, user and system time of a command.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_model::duration::TICK_S;

use crate::Error;

/// The mean times of one run, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds {
    /// Elapsed time by CLOCK_MONOTONIC.
    pub elapsed: f64,
    /// CPU time in user mode.
    pub user: f64,
    /// CPU time in the kernel.
    pub system: f64,
}

impl Seconds {
    /// Returns user and system time of the mean of `runs` runs. None if all runs together were too short: the kernel divides CPU
    /// time by what it finds at clock ticks, and few ticks divide it by chance.
    pub fn divided(&self, runs: u32) -> Option<[f64; 2]> {
        let total = (self.user + self.system) * f64::from(runs);
        (total >= MIN_TICKS * TICK_S).then_some([self.user, self.system])
    }
}

/// Smallest number of clock ticks that divide CPU time into user and system time.
const MIN_TICKS: f64 = 10.0;

/// Runs the command `runs` times, one after the other. Fails if a run does not exit with status 0.
pub fn time(command: &[String], runs: u32) -> Result<Seconds, Error> {
    let broken = |why: String| Error::Broken { name: command.join(" "), why };
    let [program, arguments @ ..] = command else { return Err(broken("the command is empty".into())) };
    let mut elapsed = Duration::ZERO;
    let before = children();
    for _ in 0..runs {
        let start = Instant::now();
        let status = Command::new(program).args(arguments).stdin(Stdio::inherit()).status();
        elapsed += start.elapsed();
        let status = status.map_err(|error| broken(error.to_string()))?;
        if !status.success() {
            return Err(broken(status.to_string()));
        }
    }
    let after = children();
    let mean = |sum: f64| sum / f64::from(runs.max(1));
    Ok(Seconds {
        elapsed: mean(elapsed.as_secs_f64()),
        user: mean(after.0 - before.0),
        system: mean(after.1 - before.1),
    })
}

/// Returns the user and system time of all children that have ended, seconds (getrusage(2), RUSAGE_CHILDREN).
fn children() -> (f64, f64) {
    // SAFETY: all zeros is a valid rusage, and getrusage writes into this one only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split('|').map(String::from).collect()
    }

    #[test]
    fn only_work_uses_cpu_time() {
        let waits = time(&words("sleep|0.05"), 2).expect("sleep");
        assert!(waits.elapsed >= 0.05 && waits.user + waits.system < 0.05, "{waits:?}");
        let works = time(&words("sh|-c|i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done"), 1).expect("sh");
        assert!(works.user > 0.0, "{works:?}");
    }

    #[test]
    fn a_short_time_is_not_divided() {
        let seconds = Seconds { elapsed: 0.01, user: 0.002, system: 0.004 };
        assert_eq!(seconds.divided(3), None);
        assert_eq!(seconds.divided(20), Some([0.002, 0.004]));
    }

    #[test]
    fn a_failed_command_has_no_time() {
        assert!(time(&words("false"), 1).is_err() && time(&words("/nowhere/at/all"), 1).is_err());
    }
}
