//! A measured figure and its spread.

use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, OrderStatistics, Statistics};

use super::bootstrap::interval;

/// A figure over its `n` samples, outliers included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub n: usize,
    pub min: f64,
    pub q1: f64,
    /// Median, the figure that reports quote.
    pub median: f64,
    pub mean: f64,
    pub q3: f64,
    pub max: f64,
    /// Sample standard deviation (divisor n - 1); 0 for one sample.
    pub sd: f64,
    /// 95 % bootstrap interval of the median.
    pub ci95: [f64; 2],
}

/// Returns the `tau` quantile (median-unbiased, type 8 of Hyndman and Fan); NaN without values.
pub fn quantile(values: &mut [f64], tau: f64) -> f64 {
    if values.is_empty() { f64::NAN } else { Data::new(values).quantile(tau) }
}

/// Returns the median; NaN without values. Reorders `values`.
pub fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { Data::new(values).median() }
}

impl Summary {
    /// Summarises `values`; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut sorted = values.to_vec();
        Some(Self {
            n: values.len(),
            min: values.min(),
            q1: quantile(&mut sorted, 0.25),
            median: median(&mut sorted),
            mean: values.mean(),
            q3: quantile(&mut sorted, 0.75),
            max: values.max(),
            sd: if values.len() > 1 { values.std_dev() } else { 0.0 },
            ci95: interval(values, median),
        })
    }

    /// Returns half the width of the interval divided by the median: 0.02 means "within 2 %". Infinite for fewer than 3
    /// samples, which show no spread.
    pub fn relative_half_width(&self) -> f64 {
        match (self.n, self.median) {
            (0..3, _) => f64::INFINITY,
            (_, 0.0) => 0.0,
            (_, median) => (self.ci95[1] - self.ci95[0]) / 2.0 / median.abs(),
        }
    }

    /// Counts the samples more than 1.5 interquartile ranges outside of the quartiles (Tukey). They are not removed.
    pub fn outliers(&self, values: &[f64]) -> usize {
        let reach = 1.5 * (self.q3 - self.q1);
        values.iter().filter(|&&v| v < self.q1 - reach || v > self.q3 + reach).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_known_sample() {
        let s = Summary::of(&[4.0, 1.0, 3.0, 2.0, 100.0]).unwrap();
        assert_eq!((s.n, s.min, s.median, s.mean, s.max), (5, 1.0, 3.0, 22.0, 100.0));
        assert!((s.sd - 43.6176).abs() < 1e-3, "{}", s.sd);
        assert!(s.ci95[0] >= 1.0 && s.ci95[0] <= 3.0 && s.ci95[1] >= 3.0 && s.ci95[1] <= 100.0);
        assert_eq!(s.outliers(&[4.0, 1.0, 3.0, 2.0, 1000.0]), 1);
    }

    #[test]
    fn one_sample_and_none() {
        let s = Summary::of(&[7.0]).unwrap();
        assert_eq!((s.median, s.sd, s.ci95), (7.0, 0.0, [7.0, 7.0]));
        assert_eq!(s.relative_half_width(), f64::INFINITY);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn the_interval_narrows_with_samples() {
        let few: Vec<f64> = (0..6).map(|i| 100.0 + f64::from(i % 6)).collect();
        let many: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i % 6)).collect();
        assert!(
            Summary::of(&many).unwrap().relative_half_width()
                < Summary::of(&few).unwrap().relative_half_width()
        );
    }
}
