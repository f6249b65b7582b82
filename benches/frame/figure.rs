//! Formats the figures of the table, each with its spread.

use weir_model::{Ratio, Summary};

use crate::BoxError;
use crate::targets::Target;

/// Formats a ratio: `1.04 [1.03, 1.06]`.
pub fn ratio(ratio: &Ratio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.ci95[0], ratio.ci95[1])
}

/// Returns the median of the ratios within the rounds.
pub fn paired(pairs: impl IntoIterator<Item = (f64, f64)>) -> Result<Ratio, BoxError> {
    Ratio::paired(pairs).ok_or_else(|| "nothing was measured".into())
}

/// Returns the median with its interval.
pub fn summary(values: &[f64]) -> Result<Summary, BoxError> {
    Summary::of(values).ok_or_else(|| "nothing was measured".into())
}

/// Formats seconds: `41.2 ms [40.1, 43.0]`.
pub fn millis(of: &Summary) -> String {
    format!("{:.1} ms [{:.1}, {:.1}]", of.median * 1e3, of.ci95[0] * 1e3, of.ci95[1] * 1e3)
}

/// Returns a row whose target is a ratio of at most `most`.
pub fn at_most(name: String, most: f64, ratio_is: &Ratio, remark: &str) -> Target {
    Target {
        name,
        target: format!("at most {most:.2} times bare"),
        measured: format!("{}{remark}", ratio(ratio_is)),
        reached: ratio_is.value <= most,
    }
}

/// Returns a row without a target, for comparison.
pub fn information(name: String, measured: String) -> Target {
    Target { name, target: "information".into(), measured, reached: true }
}
