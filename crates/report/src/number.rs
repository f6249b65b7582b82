//! Figures in tables: three significant digits, one unit for each column.

use weir_model::Size;
use weir_model::duration::three_digits;

pub use weir_model::duration::TICK_S;

/// The unit of time of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeUnit {
    /// `s`, `ms`, `µs` or `ns`.
    pub name: &'static str,
    /// Length of the unit in seconds.
    pub seconds: f64,
}

/// Units of time from the largest to the smallest.
const UNITS: [TimeUnit; 4] = [
    TimeUnit { name: "s", seconds: 1.0 },
    TimeUnit { name: "ms", seconds: 1e-3 },
    TimeUnit { name: "µs", seconds: 1e-6 },
    TimeUnit { name: "ns", seconds: 1e-9 },
];

impl TimeUnit {
    /// Returns the unit that fits the middle of `seconds` on a log scale: seconds for a column of 100 s … 20 ms, as in
    /// the textbook, milliseconds for one of 2 s … 1 ms.
    pub fn for_values(seconds: impl IntoIterator<Item = f64>) -> Self {
        let positive = seconds.into_iter().filter(|s| s.is_finite() && *s > 0.0);
        let (least, most) = positive.fold((f64::INFINITY, 0.0f64), |(a, b), s| (a.min(s), b.max(s)));
        if most == 0.0 {
            return UNITS[0];
        }
        let middle = (least.ln() + most.ln()) / 2.0;
        UNITS.into_iter().find(|unit| middle >= (unit.seconds / 10.0).ln()).unwrap_or(UNITS[3])
    }

    /// Returns `seconds` in this unit with three significant digits, without the unit's name.
    pub fn show(self, seconds: f64) -> String {
        finite(seconds / self.seconds, three_digits)
    }

    /// Returns a part of `whole` with as many decimals as `whole` is shown with, but at least one. More decimals would
    /// be noise.
    pub fn show_part(self, seconds: f64, whole: f64) -> String {
        let decimals =
            |seconds: f64| self.show(seconds).split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let decimals = decimals(whole).max(1).min(decimals(seconds));
        finite(seconds / self.seconds, |value| format!("{value:.decimals$}"))
    }
}

/// Text of a cell without a figure.
pub const ABSENT: &str = "–";

fn finite(value: f64, show: impl Fn(f64) -> String) -> String {
    if value.is_finite() { show(value) } else { ABSENT.into() }
}

/// Text in place of a division of a shorter CPU time than [`TICK_S`].
pub const UNDIVIDED: &str = "cannot be divided into user and system (shorter than 10 ms)";

/// Returns a ratio: `1.02×`, `2870×`.
pub fn ratio(value: f64) -> String {
    finite(value, |value| format!("{}×", three_digits(value)))
}

/// Returns a share as a percentage without the sign: `0.4`, `3.1`, `14`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    finite(percent, |p| if p.abs() < 9.95 { format!("{p:.1}") } else { format!("{p:.0}") })
}

/// Returns a share as a whole percentage for sentences: `3`, `<1`.
pub fn whole_percent(share: f64) -> String {
    let percent = share * 100.0;
    finite(percent, |p| if p > 0.0 && p < 1.0 { "<1".into() } else { format!("{p:.0}") })
}

/// Returns a count: all digits up to five, then `1.56 M`.
pub fn count(value: f64) -> String {
    let shown = |unit: f64, name: &str| format!("{} {name}", three_digits(value / unit));
    match value.abs() {
        v if !v.is_finite() => ABSENT.into(),
        v if v >= 0.9995e12 => shown(1e12, "T"),
        v if v >= 0.9995e9 => shown(1e9, "G"),
        v if v >= 0.9995e6 => shown(1e6, "M"),
        v if v >= 99_999.5 => shown(1e3, "k"),
        v if v >= 100.0 || v.fract() == 0.0 => format!("{value:.0}"),
        _ => three_digits(value),
    }
}

/// Returns bytes in binary units, also a multiple of 1000, so that the figures of one line can be compared.
pub fn in_binary(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let value = bytes as f64 / unit as f64;
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {name}")
}

/// Returns a measured number of bytes with three digits: in MB if [`Size`] shows `like` in MB, else in MiB.
pub fn bytes_like(bytes: u64, like: u64) -> String {
    let binary = Size(like).to_string().contains('i');
    let exact = Size(bytes).to_string();
    if bytes < 1000 || exact.contains('i') == binary && exact.find(' ').is_some_and(|digits| digits <= 3) {
        return exact;
    }
    let units: [(f64, &str); 4] = match binary {
        true => [(1024f64.powi(4), "TiB"), (1024f64.powi(3), "GiB"), (1048576.0, "MiB"), (1024.0, "KiB")],
        false => [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
    };
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes as f64 >= *unit).unwrap_or((1.0, "B"));
    format!("{} {name}", three_digits(bytes as f64 / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_binary_units_only() {
        let figures = [0, 1000, 31_588_352, 20_000_000, 1 << 40].map(in_binary);
        assert_eq!(figures, ["0 B", "1000 B", "30.1 MiB", "19.1 MiB", "1.00 TiB"]);
    }

    #[test]
    fn one_unit_fits_a_column() {
        let unit = |range: [f64; 2]| TimeUnit::for_values(range).name;
        assert_eq!(unit([107.0, 0.02]), "s");
        assert_eq!(unit([2.0, 0.001]), "ms");
        assert_eq!(unit([5e-7, 3e-6]), "µs");
        assert_eq!(unit([f64::NAN, 0.0]), "s");
        assert_eq!(unit([3e-10, 3e-10]), "ns");
    }

    #[test]
    fn parts_have_the_decimals_of_their_whole() {
        let seconds = TimeUnit::for_values([1.0]);
        assert_eq!(seconds.show(0.0213), "0.0213");
        assert_eq!(seconds.show_part(0.00004, 0.0213), "0.0000");
        assert_eq!(seconds.show_part(9.8765, 61.2), "9.9");
        assert_eq!(seconds.show_part(2.24, 614.0), "2.2");
        assert_eq!(seconds.show_part(611.4, 614.0), "611");
        assert_eq!(seconds.show(f64::NAN), "–");
    }

    #[test]
    fn figures() {
        assert_eq!([ratio(1.019), ratio(2870.4)], ["1.02×", "2870×"]);
        assert_eq!([percent(0.0312), percent(0.14), percent(f64::INFINITY)], ["3.1", "14", "–"]);
        assert_eq!([whole_percent(0.004), whole_percent(0.0), whole_percent(0.137)], ["<1", "0", "14"]);
        let counts = [3.0, 0.25, 48829.0, 123_456.0, 1_562_500.0, 2e8, 999_999.9].map(count);
        assert_eq!(counts, ["3", "0.250", "48829", "123 k", "1.56 M", "200 M", "1.00 M"]);
    }

    #[test]
    fn bytes_have_the_unit_of_their_whole() {
        assert_eq!(bytes_like(98_304_000, 100_000_000), "98.3 MB");
        assert_eq!(bytes_like(98_304_000, 100 << 20), "93.8 MiB");
        assert_eq!(bytes_like(100_000_000, 100_000_000), "100 MB");
        assert_eq!(bytes_like(102 << 20, 100_000_000), "107 MB");
        assert_eq!(bytes_like(12, 100), "12 B");
    }
}
