//! How long one write(2) takes in a directory, which decides how much can be measured there within the promised time.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A write(2) into the page cache takes a few microseconds, on a busy machine tens. One that takes longer waits for a device or a
/// server, as on a file system that is mounted with `sync`.
const SLOW_S: f64 = 300e-6;
/// Time of a short sample where calls are slow.
const SAMPLE_S: f64 = 0.05;
/// Time for all measurements of a directory. What is not measured by then is left out.
const LIMIT: Duration = Duration::from_secs(9);
/// Calls of the probe. The fastest counts: other processes can only slow a call down.
const CALLS: usize = 4;
/// Bytes of a call of the probe.
const BYTES: usize = 4096;

/// The time of a write(2), and the start of the whole measurement.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    started: Instant,
    /// Seconds of one write(2).
    write_s: f64,
}

impl Pace {
    /// Measures some calls of write(2) in a temporary file. If they fail, a later measurement has the error.
    pub fn of(directory: &Path) -> Self {
        let started = Instant::now();
        let write = |file: &mut File| {
            let begin = Instant::now();
            file.write_all(&[b'w'; BYTES]).ok().map(|()| begin.elapsed().as_secs_f64())
        };
        let fastest = tempfile::tempfile_in(directory)
            .ok()
            .and_then(|mut file| (0..CALLS).filter_map(|_| write(&mut file)).min_by(f64::total_cmp));
        Self { started, write_s: fastest.unwrap_or(0.0) }
    }

    /// Returns the seconds of a write(2) if it is so slow that less is measured.
    pub fn slow_write_s(&self) -> Option<f64> {
        (self.write_s > SLOW_S).then_some(self.write_s)
    }

    /// Returns how many of `most` calls of write(2) a sample makes: fewer where a call is slow, but at least two.
    pub fn calls(&self, most: u64) -> u64 {
        self.slow_write_s().map_or(most, |write_s| calls_in(SAMPLE_S, write_s, most))
    }

    /// Returns whether there is time for further measurements.
    pub fn has_time(&self) -> bool {
        self.started.elapsed() < LIMIT
    }
}

/// Returns how many of `most` calls of `call_s` fit into `sample_s`, but at least two.
pub fn calls_in(sample_s: f64, call_s: f64, most: u64) -> u64 {
    ((sample_s / call_s.max(1e-9)) as u64).min(most).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_are_made_less_often() {
        let pace = |write_s| Pace { started: Instant::now(), write_s };
        assert_eq!(pace(5e-6).calls(5000), 5000);
        assert_eq!(pace(1e-3).calls(5000), 50);
        assert_eq!(pace(1.0).calls(5000), 2);
        assert_eq!(pace(5e-6).slow_write_s(), None);
        assert!(pace(0.01).slow_write_s().is_some() && pace(0.01).has_time());
        assert_eq!(Pace::of(Path::new("/no/such/directory")).calls(7), 7);
    }
}
