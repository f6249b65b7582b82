//! Figures as the table shows them, each with its spread.

use weir_model::{Ratio, Summary};

use crate::Failed;
use crate::targets::Target;

/// `1.04 [1.03, 1.06]`.
pub fn ratio(ratio: &Ratio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.ci95[0], ratio.ci95[1])
}

/// The median of the ratios within the rounds.
pub fn paired(pairs: impl IntoIterator<Item = (f64, f64)>) -> Result<Ratio, Failed> {
    Ratio::paired(pairs).ok_or_else(|| "nothing was measured".into())
}

/// The median with its interval.
pub fn summary(values: &[f64]) -> Result<Summary, Failed> {
    Summary::of(values).ok_or_else(|| "nothing was measured".into())
}

/// Seconds as `41.2 ms [40.1, 43.0]`.
pub fn millis(of: &Summary) -> String {
    format!("{:.1} ms [{:.1}, {:.1}]", of.median * 1e3, of.ci95[0] * 1e3, of.ci95[1] * 1e3)
}

/// A row that has to be at most so many times as long.
pub fn at_most(name: String, most: f64, ratio_is: &Ratio, remark: &str) -> Target {
    Target {
        name,
        target: format!("at most {most:.2} times bare"),
        measured: format!("{}{remark}", ratio(ratio_is)),
        reached: ratio_is.value <= most,
    }
}

/// A row that stands there to be compared with: nothing is asked of it.
pub fn information(name: String, measured: String) -> Target {
    Target { name, target: "information".into(), measured, reached: true }
}
