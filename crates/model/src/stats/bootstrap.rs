//! The percentile bootstrap. The generator has a fixed seed, so that the same samples give the same interval.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::summary::quantile;

/// Resamples for one interval: with 1000 the 2.5 % and 97.5 % points are stable.
pub const RESAMPLES: usize = 1000;

/// Returns [`RESAMPLES`] lists of `n` indexes, drawn with replacement from `0..n`.
pub fn resamples(n: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut generator = StdRng::seed_from_u64(0x5eed ^ n as u64);
    (0..if n == 0 { 0 } else { RESAMPLES })
        .map(move |_| (0..n).map(|_| generator.random_range(0..n)).collect())
}

/// Returns the 95 % interval of `statistic` over `values`. For one value both ends are the statistic itself.
pub fn interval(values: &[f64], statistic: impl Fn(&mut [f64]) -> f64) -> [f64; 2] {
    let mut found: Vec<f64> = resamples(values.len())
        .map(|indices| statistic(&mut indices.iter().map(|&i| values[i]).collect::<Vec<_>>()))
        .collect();
    [quantile(&mut found, 0.025), quantile(&mut found, 0.975)]
}
