//! Figures in sentences: a figure stands alone only if its interval is narrow, otherwise the sentence has the interval.

use crate::duration::{format_seconds, three_digits};
use crate::stats::{MIN_SAMPLES, Ratio, Summary};

/// Largest half width of a 95 % interval, as a share of the figure, for a figure that stands alone. Beyond a tenth even its
/// second digit is not certain.
const NARROW: f64 = 0.1;

fn is_narrow(value: f64, [low, high]: [f64; 2]) -> bool {
    (high - low) / 2.0 <= NARROW * value.abs()
}

/// Returns seconds: `612 µs`, or `200 µs to 1.00 ms` for a wide interval.
pub fn seconds(value: f64, ci95: [f64; 2]) -> String {
    match is_narrow(value, ci95) {
        true => format_seconds(value),
        false => format!("{} to {}", format_seconds(ci95[0].max(0.0)), format_seconds(ci95[1])),
    }
}

/// Returns a price in nanoseconds: `612 ns`, `200 ns to 1.00 µs` for a wide interval, or `about 612 ns` without an interval.
pub fn price(ns: f64, ci95_ns: Option<[f64; 2]>) -> String {
    match ci95_ns {
        Some(ends) => seconds(ns / 1e9, ends.map(|end| end / 1e9)),
        None => format!("about {}", format_seconds(ns / 1e9)),
    }
}

/// Returns the median of some seconds, with `about` if there are too few samples for an interval.
pub fn median_seconds(summary: &Summary) -> String {
    match summary.n < MIN_SAMPLES {
        true => format!("about {}", format_seconds(summary.median)),
        false => seconds(summary.median, summary.ci95),
    }
}

/// Returns a ratio for a table: `1.44×`, or `1.2–1.6×` for a wide interval.
pub fn short_ratio(ratio: &Ratio) -> String {
    let [low, high] = ratio.ci95;
    match !ratio.has_interval() || is_narrow(ratio.value, ratio.ci95) {
        true => format!("{}×", three_digits(ratio.value)),
        false => format!("{}–{}×", two_digits(low), two_digits(high)),
    }
}

/// Returns a ratio for a sentence: `12.3× [12.1, 12.6]`, or `about 12.3×` if there are too few samples for an interval.
pub fn ratio(ratio: &Ratio) -> String {
    if !ratio.has_interval() {
        return format!("about {}×", three_digits(ratio.value));
    }
    let [low, high] = ratio.ci95.map(three_digits);
    format!("{}× [{low}, {high}]", three_digits(ratio.value))
}

/// Returns a number with two significant digits.
fn two_digits(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude >= 99.5 => {
            let step = 10f64.powf(magnitude.log10().floor() - 1.0);
            format!("{:.0}", (value / step).round() * step)
        }
        magnitude if magnitude >= 9.95 => format!("{value:.0}"),
        magnitude if magnitude >= 0.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_wide_interval_have_two_digits() {
        assert_eq!([1929.0, 13140.0, 99.4, 0.123].map(two_digits), ["1900", "13000", "99", "0.12"]);
    }

    #[test]
    fn a_wide_interval_replaces_the_figure() {
        assert_eq!(seconds(612e-6, [600e-6, 630e-6]), format_seconds(612e-6));
        let wide = seconds(612e-6, [200e-6, 1e-3]);
        assert_eq!(wide, format!("{} to {}", format_seconds(200e-6), format_seconds(1e-3)));
    }

    #[test]
    fn a_ratio_has_its_interval_if_it_has_one() {
        let of = |n, value, ci95| Ratio { n, value, ci95 };
        assert_eq!(ratio(&of(1, 12.34, [12.34, 12.34])), "about 12.3×");
        assert_eq!(ratio(&of(3, 12.34, [12.1, 12.6])), "12.3× [12.1, 12.6]");
        assert_eq!(short_ratio(&of(5, 1.44, [1.4, 1.5])), "1.44×");
        assert_eq!(short_ratio(&of(5, 1.44, [1.2, 1.6])), "1.2–1.6×");
        assert_eq!(short_ratio(&of(5, 40.0, [12.0, 96.0])), "12–96×");
    }

    #[test]
    fn two_samples_are_an_estimate() {
        let summary = Summary::of(&[1.0, 3.0]).unwrap();
        assert_eq!(median_seconds(&summary), format!("about {}", format_seconds(2.0)));
    }
}
