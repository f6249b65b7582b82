//! Measures the elapsed, user and system time of a command.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Error;

/// The mean times of one run, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds {
    /// CLOCK_MONOTONIC.
    pub elapsed: f64,
    /// CPU time in user mode.
    pub user: f64,
    /// CPU time in the kernel.
    pub system: f64,
}

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
    fn a_failed_command_has_no_time() {
        assert!(time(&words("false"), 1).is_err() && time(&words("/nowhere/at/all"), 1).is_err());
    }
}
