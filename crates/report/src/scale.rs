//! Axes of plots: position of a value on an axis, and the values of the ticks.

use weir_model::Size;
use weir_model::duration::three_digits;

/// Linear or logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Spacing {
    Linear,
    /// Shows positive values only.
    Log,
}

/// Unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Seconds,
    Bytes,
    Number,
    /// Whole things: only whole numbers have ticks.
    Count,
}

/// Spacing and unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Axis {
    pub spacing: Spacing,
    pub unit: Unit,
}

/// An axis and its two ends, in the axis's own coordinates: values if linear, decadic logarithms if not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    axis: Axis,
    low: f64,
    high: f64,
}

/// Largest magnitude on a linear axis: the difference of two such values is still finite in f64.
const LARGEST: f64 = 1e300;

impl Scale {
    /// Makes a scale from the smallest to the largest of the `values` that the axis can show; `None` if there are none.
    pub(crate) fn new(axis: Axis, values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let placed = values.into_iter().filter_map(|value| place(axis, value));
        let (low, high) = placed.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            return None;
        }
        let half = match axis.spacing {
            Spacing::Log => 0.5,
            Spacing::Linear => (low.abs() * 0.1).max(0.5),
        };
        // The values differ by rounding only: show one value in the middle.
        let one = high - low <= 1e-9 * low.abs().max(high.abs());
        Some(if one { Self { axis, low: low - half, high: high + half } } else { Self { axis, low, high } })
    }

    /// Returns the position of `value` from 0 (low end) to 1; `None` outside of the axis.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        let share = (place(self.axis, value)? - self.low) / (self.high - self.low);
        (-1e-9..=1.0 + 1e-9).contains(&share).then(|| share.clamp(0.0, 1.0))
    }

    /// Returns the value in the middle of the axis.
    pub(crate) fn middle(&self) -> f64 {
        let middle = (self.low + self.high) / 2.0;
        if self.axis.spacing == Spacing::Log { 10f64.powf(middle) } else { middle }
    }

    /// Returns at most `most` ticks: position from 0 to 1, and label.
    pub(crate) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let (unit, name) = match (self.axis.spacing, self.axis.unit) {
            // All labels have one unit.
            (Spacing::Linear, Unit::Bytes) => binary_unit(self.high),
            _ => (1.0, ""),
        };
        let mut values = match self.axis.spacing {
            Spacing::Linear => linear(self.low / unit, self.high / unit, most),
            Spacing::Log => self.logarithmic(most),
        };
        if self.axis.unit == Unit::Count {
            values.retain(|value| (value - value.round()).abs() < 1e-9);
        }
        let text = |value: f64| match name {
            "" => label(value, self.axis.unit),
            name => format!("{} {}", short(value), if value == 0.0 { "B" } else { name }),
        };
        let mut ticks: Vec<(f64, String)> =
            values.into_iter().filter_map(|value| Some((self.share(value * unit)?, text(value)))).collect();
        ticks.dedup_by(|a, b| a.1 == b.1);
        ticks
    }

    fn logarithmic(&self, most: usize) -> Vec<f64> {
        let base = if self.axis.unit == Unit::Bytes { 2.0 } else { 10.0 };
        let candidates = powers(base, self.low, self.high, most);
        if candidates.len() >= 2 {
            return candidates;
        }
        // Even steps of the value would crowd at the high end: they are the last resort.
        [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]]
            .into_iter()
            .map(|digits| with_digits(digits, self.low, self.high))
            .find(|finer| (2..=most).contains(&finer.len()))
            .unwrap_or_else(|| linear(10f64.powf(self.low), 10f64.powf(self.high), most))
    }
}

/// Returns a value in the axis's coordinates; `None` if the axis cannot show it.
fn place(axis: Axis, value: f64) -> Option<f64> {
    match axis.spacing {
        Spacing::Linear => (value.abs() <= LARGEST).then_some(value),
        Spacing::Log => (value > 0.0 && value.is_finite()).then(|| value.log10()),
    }
}

/// Returns at most `most` evenly spaced powers of `base` between 10^low and 10^high.
fn powers(base: f64, low: f64, high: f64, most: usize) -> Vec<f64> {
    let steps = [1.0, 2.0, 4.0, 10.0, 20.0, 100.0, 400.0];
    let exponents = |step: f64| {
        let in_steps = |end: f64| end / base.log10() / step;
        // The tolerance keeps an end that is itself a power of the base.
        ((in_steps(low) - 1e-6).ceil(), (in_steps(high) + 1e-6).floor())
    };
    let fits = |step: &&f64| {
        let (first, last) = exponents(**step);
        last - first < most as f64
    };
    let Some(&step) = steps.iter().find(fits) else { return Vec::new() };
    let (first, last) = exponents(step);
    (0..most).map(|n| first + n as f64).take_while(|&n| n <= last).map(|n| base.powf(n * step)).collect()
}

/// Returns the multiples of the powers of ten by `digits` between 10^low and 10^high.
fn with_digits(digits: &[f64], low: f64, high: f64) -> Vec<f64> {
    let of_digit = |digit: f64| {
        let shift = digit.log10();
        powers(10.0, low - shift, high - shift, 3).into_iter().map(move |power| power * digit)
    };
    let mut values: Vec<f64> = digits.iter().copied().flat_map(of_digit).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns at most `most` round values from `low` to `high`, 1, 2 or 5 times a power of ten apart.
fn linear(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.saturating_sub(1).max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil();
    (0..most).map(|n| (first + n as f64) * step).take_while(|&value| value <= high).collect()
}

/// Returns the largest power of 1024 up to a number of bytes, and its name.
fn binary_unit(bytes: f64) -> (f64, &'static str) {
    const NAMES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = ((bytes.max(1.0).log2() / 10.0) as usize).min(NAMES.len() - 1);
    (1024f64.powi(power as i32), NAMES[power])
}

fn label(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes if (1.0..9e18).contains(&value) => Size(value.round() as u64).to_string(),
        Unit::Bytes => format!("{} B", short(value)),
        Unit::Number | Unit::Count => short(value),
        Unit::Seconds => {
            let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
            let fits = |unit: &&(f64, &str)| value.abs() >= unit.0 * (1.0 - 1e-9);
            let (size, name) = units.iter().find(fits).copied().unwrap_or((1e-9, "ns"));
            if value == 0.0 { "0 s".into() } else { format!("{} {name}", short(value / size)) }
        }
    }
}

/// Returns three significant digits without trailing zeros, in scientific notation beyond 1e-4 and 1e7.
fn short(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let digits = three_digits(value);
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').into(),
        false => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spacing: Spacing, unit: Unit, ends: [f64; 2], most: usize) -> Vec<String> {
        let scale = Scale::new(Axis { spacing, unit }, ends).unwrap();
        scale.ticks(most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn decades_of_seconds_and_powers_of_two_of_bytes() {
        use Spacing::Log;
        assert_eq!(labels(Log, Unit::Seconds, [0.0213, 61.2], 6), ["100 ms", "1 s", "10 s"]);
        assert_eq!(labels(Log, Unit::Bytes, [1.0, 65536.0], 8), ["1 B", "16 B", "256 B", "4 KiB", "64 KiB"]);
        assert_eq!(labels(Log, Unit::Bytes, [1.0, 65536.0], 9).len(), 9);
        assert_eq!(labels(Log, Unit::Seconds, [1e-5, 1e-3], 6), ["10 µs", "100 µs", "1 ms"]);
    }

    #[test]
    fn narrow_ranges_still_get_ticks() {
        use Spacing::{Linear, Log};
        assert!(labels(Log, Unit::Seconds, [0.021, 0.024], 6).len() >= 2);
        assert_eq!(labels(Linear, Unit::Number, [0.0, 10.0], 6), ["0", "2", "4", "6", "8", "10"]);
        assert!(labels(Log, Unit::Bytes, [3000.0, 4000.0], 6).len() >= 2);
        assert!(!labels(Log, Unit::Seconds, [0.03, 0.03], 6).is_empty());
        assert_eq!(labels(Log, Unit::Number, [0.14, 6.3], 7), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(labels(Log, Unit::Number, [0.14, 6.3], 4), ["0.3", "1", "3"], "a phone has room for four");
    }

    #[test]
    fn whole_things_have_whole_ticks() {
        use Spacing::{Linear, Log};
        assert_eq!(labels(Linear, Unit::Count, [1.0, 3.0], 9), ["1", "2", "3"]);
        assert_eq!(labels(Log, Unit::Count, [0.6, 1.0], 7), ["1"]);
        assert_eq!(labels(Log, Unit::Count, [0.6, 1000.0], 7), ["1", "10", "100", "1000"]);
    }

    #[test]
    fn a_linear_axis_of_bytes_has_one_unit() {
        let ticks = |high| labels(Spacing::Linear, Unit::Bytes, [0.0, high], 7);
        assert_eq!(ticks(3e6), ["0 B", "0.5 MiB", "1 MiB", "1.5 MiB", "2 MiB", "2.5 MiB"]);
        assert_eq!(ticks(6.0), ["0 B", "1 B", "2 B", "3 B", "4 B", "5 B", "6 B"]);
    }

    #[test]
    fn the_ends_are_the_ends() {
        let scale =
            Scale::new(Axis { spacing: Spacing::Log, unit: Unit::Number }, [1.0, 100.0, f64::NAN, -5.0, 0.0]);
        let scale = scale.unwrap();
        assert_eq!(
            [scale.share(1.0), scale.share(10.0), scale.share(100.0)],
            [Some(0.0), Some(0.5), Some(1.0)]
        );
        assert_eq!([scale.share(0.0), scale.share(f64::NAN), scale.share(1000.0)], [None; 3]);
        assert_eq!(Scale::new(Axis { spacing: Spacing::Log, unit: Unit::Bytes }, [0.0, f64::NAN]), None);
    }
}
