//! Finds the number of bytes of a sample by a few growing attempts. One small attempt is not enough: one-time costs
//! (the first read of a cold file, the first allocation) would count as costs per byte.

use crate::plan::Cell;

/// Records of the first attempt: few, because one record can take a millisecond.
const FIRST_RECORDS: u64 = 64;
/// Records of the first attempt if each waits for the device.
const FIRST_SYNCS: u64 = 8;
/// Largest first attempt in bytes, unless one unit is larger.
const FIRST_BYTES: u64 = 4 << 20;
/// Largest number of attempts per cell; each moves at least twice the bytes of the previous one.
const ATTEMPTS: usize = 8;
/// Lower limit of the predicted time per byte, as a share of the measured CPU time per byte. Two nearly equal times of
/// a noisy device must not predict that the remaining bytes cost nothing.
const MIN_SLOPE: f64 = 0.9;

/// The next step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Try this number of bytes.
    Again(u64),
    /// The number of bytes of a sample, and its estimated seconds.
    Done(u64, f64),
}

/// The search for the sample size of one cell.
#[derive(Debug)]
pub struct Pilot {
    unit: u64,
    whole: u64,
    target_s: f64,
    exact: bool,
    before: (u64, f64),
    attempts: usize,
}

impl Pilot {
    /// Searches for samples of about `target_s`. With `exact`, a sample is the whole cell.
    pub fn new(cell: &Cell, target_s: f64, exact: bool) -> Self {
        Self { unit: cell.unit_bytes(), whole: cell.bytes, target_s, exact, before: (0, 0.0), attempts: 0 }
    }

    /// Returns the bytes of the first attempt at `cell`.
    pub fn first(&self, cell: &Cell) -> u64 {
        let slow = cell.sync.kind.in_every_write() || cell.sync.kind.repeats();
        let records = if slow { FIRST_SYNCS } else { FIRST_RECORDS };
        cell.record_bytes.saturating_mul(records).min(FIRST_BYTES).max(self.unit).min(self.whole)
    }

    /// Returns the step after an attempt that moved `bytes` in `seconds`, with `cpu_s` of CPU time.
    pub fn after(&mut self, bytes: u64, seconds: f64, cpu_s: f64) -> Step {
        self.attempts += 1;
        let (bytes_before, seconds_before) = self.before;
        self.before = (bytes, seconds);
        let grown = bytes.saturating_sub(bytes_before).max(1) as f64;
        let least = cpu_s.min(seconds) / bytes.max(1) as f64 * MIN_SLOPE;
        let slope = ((seconds - seconds_before) / grown).max(least).max(1e-13);
        let time_of = |other: u64| match other.checked_sub(bytes) {
            Some(more) => seconds + slope * more as f64,
            None => seconds * other as f64 / bytes as f64, // as in `fitting`
        };
        if bytes == self.whole || self.exact || time_of(self.whole) <= self.target_s * 1.5 {
            return Step::Done(self.whole, time_of(self.whole));
        }
        let fitting = self.fitting(bytes, seconds, slope, self.target_s);
        // A single attempt cannot separate one-time waits from waits per byte.
        let close = self.attempts > 1 && seconds >= self.target_s / 5.0 || fitting <= bytes.saturating_mul(2);
        if close || self.attempts == ATTEMPTS {
            return Step::Done(fitting, time_of(fitting));
        }
        // The next attempt takes about a fifth of the target time, and moves four times the bytes, or as many as fit.
        let next = self.fitting(bytes, seconds, slope, self.target_s / 5.0).max(bytes.saturating_mul(4));
        Step::Again(next.min(fitting).min(self.whole))
    }

    /// Returns the bytes that take about `aim_s`: whole units, at least one, and no fewer than an attempt moved in less
    /// time.
    fn fitting(&self, bytes: u64, seconds: f64, slope: f64, aim_s: f64) -> u64 {
        let more = ((aim_s - seconds) / slope).max(0.0) as u64;
        let bytes = if seconds > aim_s {
            (bytes as f64 * aim_s / seconds) as u64
        } else {
            bytes.saturating_add(more)
        };
        bytes.div_ceil(self.unit).max(1).saturating_mul(self.unit).min(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Runs the search on a cell that waits `fixed_s` (alternately half more and half less, as devices do) and uses
    /// `slope` seconds of CPU time per byte.
    fn search(record: u64, fixed_s: f64, slope: f64, exact: bool) -> (u64, f64, u64) {
        let axes =
            crate::plan::Axes { records: vec![record], methods: vec!["syscall".into()], ..fixture::axes() };
        let cell = axes.cells(1).unwrap().remove(0);
        let mut pilot = Pilot::new(&cell, 0.1, exact);
        let (mut bytes, mut spent) = (pilot.first(&cell), 0.0);
        for attempt in 0..20 {
            let cpu_s = slope * bytes as f64;
            let seconds = fixed_s * if attempt % 2 == 0 { 1.5 } else { 0.5 } + cpu_s;
            spent += seconds;
            match pilot.after(bytes, seconds, cpu_s) {
                Step::Again(more) => bytes = more,
                Step::Done(bytes, seconds) => return (bytes, seconds, (spent * 1e3) as u64),
            }
        }
        panic!("the search does not end");
    }

    #[test]
    fn a_slow_cell_gets_the_bytes_that_fit() {
        let (bytes, seconds, spent_ms) = search(1, 0.0, 1e-6, false);
        assert!((90_000..110_000).contains(&bytes) && (seconds - 0.1).abs() < 0.01, "{bytes} {seconds}");
        assert!(spent_ms < 60, "{spent_ms} ms");
    }

    #[test]
    fn one_time_costs_do_not_count_as_costs_per_byte() {
        // 5 ms for the first read of a cold file, then 0.5 ns per byte: the whole takes 55 ms and fits.
        assert_eq!(search(64, 0.005, 0.5e-9, false).0, 100_000_000);
        let (bytes, ..) = search(1, 0.005, 1e-6, false);
        assert!((50_000..150_000).contains(&bytes), "{bytes}");
        // 64-byte records, 16 ns per byte: the whole takes 1.6 s, in spite of the noise.
        let (bytes, ..) = search(64, 0.02, 16e-9, false);
        assert!((1_500_000..8_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_fast_cell_and_every_exact_cell_run_over_all_bytes() {
        assert_eq!(search(65536, 1e-5, 0.3e-9, false).0, 100_000_000);
        assert_eq!(search(1, 0.0, 1e-6, true).0, 100_000_000);
    }

    #[test]
    fn a_very_slow_call_is_not_tried_for_long() {
        // 1 ms per byte: a sample is about a hundred records.
        let (bytes, _, spent_ms) = search(1, 0.0, 1e-3, false);
        assert!((90..=110).contains(&bytes) && spent_ms < 200, "{bytes} in {spent_ms} ms");
    }

    #[test]
    fn a_sample_shorter_than_the_attempt_takes_its_share_of_the_time() {
        let axes =
            crate::plan::Axes { records: vec![25], methods: vec!["syscall".into()], ..fixture::axes() };
        let cell = axes.cells(1).unwrap().remove(0);
        // 8 records of 25 bytes, 100 ms each: one record fits.
        let step = Pilot::new(&cell, 0.1, false).after(200, 0.8, 1e-4);
        assert_eq!(step, Step::Done(25, 0.8 * 25.0 / 200.0));
    }
}
