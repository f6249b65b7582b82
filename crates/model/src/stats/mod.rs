//! Statistics of noisy, interleaved measurements.
//!
//! Intervals are percentile bootstraps over rounds. They assume no distribution, and a round that is slow for all rows
//! cancels out of the ratios within it (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013).

mod bootstrap;
mod ratio;
mod summary;

pub use bootstrap::{RESAMPLES, interval, resamples};
pub use ratio::{MIN_SAMPLES, Ratio, pooled_noise};
pub use summary::{Summary, median, quantile};
