//! The knee: the smallest record size beyond which larger records gain almost nothing.

use serde::{Deserialize, Serialize};

use crate::stats::{median, resamples};

/// Record sizes within this share of the best time are equally good: a smaller difference is noise on most machines.
pub const TOLERANCE: f64 = 0.05;

/// The smallest measured record size within [`TOLERANCE`] of the best time, with its 95 % interval. If it is the largest
/// size measured, gains go on beyond it, see [`Knee::within`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knee {
    /// Bytes of a record.
    pub bytes: u64,
    /// Ends of the interval in bytes; both are measured sizes.
    pub ci95: [u64; 2],
}

impl Knee {
    /// Returns the knee if it is below `largest`, the largest record measured in bytes. Otherwise it is only the least that
    /// the knee can be: larger records may gain more.
    pub fn within(self, largest: u64) -> Option<Self> {
        (self.bytes < largest).then_some(self)
    }
}

/// A record size and its seconds in each round; `None` for a round without a sample.
pub type Curve = (u64, Vec<Option<f64>>);

fn knee_of(curves: &[Curve], rounds: impl Iterator<Item = usize> + Clone) -> Option<u64> {
    let mut points: Vec<(u64, f64)> = curves
        .iter()
        .map(|(bytes, values)| {
            let mut drawn: Vec<f64> =
                rounds.clone().filter_map(|round| values.get(round).copied()?).collect();
            if drawn.is_empty() {
                drawn = values.iter().copied().flatten().collect();
            }
            (*bytes, median(&mut drawn))
        })
        .filter(|(_, seconds)| seconds.is_finite())
        .collect();
    points.sort_by_key(|&(bytes, _)| bytes);
    let best = points.iter().map(|&(_, seconds)| seconds).fold(f64::INFINITY, f64::min);
    points.iter().find(|&&(_, seconds)| seconds <= best * (1.0 + TOLERANCE)).map(|&(bytes, _)| bytes)
}

/// Returns the knee of `curves` with an interval bootstrapped over rounds. Returns `None` with fewer than two sizes.
pub fn knee(curves: &[Curve]) -> Option<Knee> {
    if curves.len() < 2 {
        return None;
    }
    let rounds = curves.iter().map(|(_, values)| values.len()).max()?;
    let bytes = knee_of(curves, 0..rounds)?;
    let mut found: Vec<u64> =
        resamples(rounds).filter_map(|drawn| knee_of(curves, drawn.into_iter())).collect();
    found.sort_unstable();
    let end = |share: f64| found[((found.len() - 1) as f64 * share).round() as usize];
    Some(Knee { bytes, ci95: [end(0.025).min(bytes), end(0.975).max(bytes)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(bytes: u64, seconds: &[f64]) -> Curve {
        (bytes, seconds.iter().map(|&s| Some(s)).collect())
    }

    #[test]
    fn where_gains_stop() {
        let curves =
            [curve(1, &[100.0; 4]), curve(64, &[2.0; 4]), curve(4096, &[1.04; 4]), curve(65536, &[1.0; 4])];
        assert_eq!(knee(&curves), Some(Knee { bytes: 4096, ci95: [4096, 4096] }));
    }

    #[test]
    fn noise_widens_the_interval_and_missing_samples_are_allowed() {
        let curves = [
            curve(1, &[9.0, 9.0, 9.0, 9.0, 9.0]),
            curve(1024, &[1.0, 1.2, 1.01, 1.2, 1.04]),
            (4096, vec![Some(1.0), None, Some(1.0), None, Some(1.01)]),
        ];
        let knee = knee(&curves).unwrap();
        assert_eq!((knee.bytes, knee.ci95[0], knee.ci95[1]), (1024, 1024, 4096));
    }

    #[test]
    fn the_knee_of_a_curve_that_falls_to_its_end_is_its_largest_size_and_not_within_it() {
        let knee = knee(&[curve(1, &[9.0; 4]), curve(64, &[2.0; 4]), curve(4096, &[1.0; 4])]).unwrap();
        assert_eq!(knee, Knee { bytes: 4096, ci95: [4096, 4096] });
        assert_eq!((knee.within(4096), knee.within(8192)), (None, Some(knee)));
    }

    #[test]
    fn one_size_has_no_knee() {
        assert_eq!(knee(&[curve(1, &[1.0])]), None);
        assert_eq!(knee(&[]), None);
    }
}
