//! Ratios of two rows that were measured in the same rounds.

use serde::{Deserialize, Serialize};

use super::bootstrap::interval;
use super::summary::median;

/// Smallest number of samples that show a spread, and thus have an interval: one has none, and of two the interval is only their range.
pub const MIN_SAMPLES: usize = 3;

/// The median of the ratios within the rounds, with its 95 % interval. An arithmetic or geometric mean would follow
/// the few samples that a busy host slows down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Number of rounds with samples of both rows.
    pub n: usize,
    /// Median of the ratios within rounds.
    pub value: f64,
    /// Ends of the 95 % interval; it claims nothing if [`Ratio::has_interval`] is false.
    pub ci95: [f64; 2],
}

impl Ratio {
    /// Returns `a / b` over pairs of the same round; `None` without a usable pair.
    pub fn paired(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let mut logs: Vec<f64> =
            pairs.into_iter().map(|(a, b)| (a / b).ln()).filter(|log| log.is_finite()).collect();
        if logs.is_empty() {
            return None;
        }
        let ends = interval(&logs, median);
        Some(Self { n: logs.len(), value: median(&mut logs).exp(), ci95: ends.map(f64::exp) })
    }

    /// Returns `a / b` for samples of different runs, which share no rounds.
    pub fn unpaired(a: &[f64], b: &[f64]) -> Option<Self> {
        let logs = |values: &[f64]| -> Vec<f64> {
            values.iter().map(|v| v.ln()).filter(|log| log.is_finite()).collect()
        };
        let (mut a, mut b) = (logs(a), logs(b));
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let (middle_a, middle_b) = (median(&mut a), median(&mut b));
        let (ends_a, ends_b) = (interval(&a, median), interval(&b, median));
        // The samples are independent, so the squares of their distances from the medians add up.
        let low = ((middle_a - ends_a[0]).powi(2) + (ends_b[1] - middle_b).powi(2)).sqrt();
        let high = ((ends_a[1] - middle_a).powi(2) + (middle_b - ends_b[0]).powi(2)).sqrt();
        let value = middle_a - middle_b;
        Some(Self {
            n: a.len().min(b.len()),
            value: value.exp(),
            ci95: [(value - low).exp(), (value + high).exp()],
        })
    }

    /// Returns the ratio with another value, and with an interval that contains it.
    pub fn with_value(self, value: f64) -> Self {
        let [low, high] = self.ci95;
        Self { value, ci95: [low.min(value), high.max(value)], ..self }
    }

    /// Returns whether there are enough samples for an interval.
    pub fn has_interval(&self) -> bool {
        self.n >= MIN_SAMPLES
    }

    /// Returns whether no difference can be claimed: the interval contains 1, or the ratio is within the noise `floor` of
    /// two runs of the same row (0.03 for 3 %).
    pub fn is_tie(&self, floor: f64) -> bool {
        // An end that is shown as 1.00 counts as 1.
        const ROUNDING: f64 = 0.005;
        let [low, high] = self.ci95;
        (low < 1.0 + ROUNDING && high > 1.0 - ROUNDING) || self.value.ln().abs() <= (1.0 + floor).ln()
    }
}

/// Returns the noise of two runs of the same row: the distance from 1 of the farther end of the 95 % interval of the
/// median over all A/A pairs. `None` with fewer than 3 pairs.
pub fn pooled_noise(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let ratio = Ratio::paired(pairs)?;
    let farther = ratio.ci95[0].ln().abs().max(ratio.ci95[1].ln().abs());
    (ratio.n >= 3).then(|| farther.exp() - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_round_cancels_out() {
        let pairs = [(2.0, 1.0), (20.0, 10.0), (200.0, 100.0), (2.0, 1.0)];
        let ratio = Ratio::paired(pairs).unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-9 && (ratio.ci95[0] - 2.0).abs() < 1e-9, "{ratio:?}");
        assert!(!ratio.is_tie(0.05));
    }

    #[test]
    fn a_ratio_within_the_noise_is_a_tie() {
        let noisy = Ratio::paired([(1.1, 1.0), (0.9, 1.0), (1.05, 1.0), (0.96, 1.0)]).unwrap();
        assert!(noisy.is_tie(0.0));
        let small = Ratio::paired([(1.02, 1.0), (1.021, 1.0), (1.019, 1.0)]).unwrap();
        assert!(small.is_tie(0.03) && !small.is_tie(0.01));
    }

    #[test]
    fn noise_of_identical_pairs_is_zero_and_of_two_is_unknown() {
        assert_eq!(pooled_noise([(1.0, 1.0); 5]), Some(0.0));
        assert_eq!(pooled_noise([(1.0, 1.0); 2]), None);
        assert!(pooled_noise([(1.1, 1.0), (1.0, 1.1), (1.2, 1.0)]).unwrap() > 0.05);
    }

    #[test]
    fn two_runs_are_compared_without_pairing() {
        let ratio = Ratio::unpaired(&[2.0, 2.1, 1.9, 2.0], &[1.0, 1.05, 0.95, 1.0]).unwrap();
        assert!(ratio.ci95[0] < 2.0 && ratio.ci95[1] > 2.0 && ratio.ci95[0] > 1.8, "{ratio:?}");
        assert_eq!(Ratio::unpaired(&[], &[1.0]), None);
        assert_eq!(Ratio::paired([(0.0, 1.0), (1.0, 0.0)]), None);
    }
}
