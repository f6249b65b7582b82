//! Statistics of noisy, interleaved measurements.
//!
//! Intervals are percentile bootstraps over rounds: no distribution is assumed, and a round that was
//! slow for everything cancels out of a ratio taken within it (Kalibera and Jones, "Rigorous
//! benchmarking in reasonable time", 2013).

mod bootstrap;
mod ratio;
mod summary;

pub use bootstrap::{RESAMPLES, interval, resamples};
pub use ratio::{Ratio, pooled_noise};
pub use summary::{Summary, median};
