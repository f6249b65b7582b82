//! Formats whole numbers with separators of thousands.

/// Returns a number with grouped digits: `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun, whose plural ends with s: `1 write`, `2,000 writes`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Returns an estimated number with three significant digits: `about 4,120,000`. More digits would look measured.
pub fn about(number: u64) -> String {
    let digits = number.checked_ilog10().unwrap_or(0) + 1;
    let unit = 10u64.pow(digits.saturating_sub(3));
    let rounded =
        (number / unit).saturating_add(u64::from(number % unit >= unit.div_ceil(2))).saturating_mul(unit);
    format!("about {}", thousands(rounded))
}

/// How certain a number is, from exact to least certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Every one was counted, by weir or by the kernel.
    Exact,
    /// It follows from samples.
    About,
    /// As [`Self::About`], and more of them may be counted elsewhere.
    AtLeast,
}

impl Certainty {
    /// Makes the certainty of a number from its two flags; `at_least` implies `estimated`.
    pub fn of_flags(estimated: bool, at_least: bool) -> Self {
        match (estimated, at_least) {
            (_, true) => Self::AtLeast,
            (true, false) => Self::About,
            (false, false) => Self::Exact,
        }
    }

    /// Returns the number with the words for its certainty: `4,123`, `about 4,120`, `at least about 4,120`.
    pub fn text(self, number: u64) -> String {
        match self {
            Self::Exact => thousands(number),
            Self::About => about(number),
            Self::AtLeast => format!("at least {}", about(number)),
        }
    }
}

/// Returns an estimated number of bytes with three significant digits and a unit of powers of ten: `8.64 GB`.
pub fn about_bytes(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 { value.round().to_string() } else { crate::duration::three_digits(value) };
    format!("{digits} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(
            [0, 1, 2, 1200].map(|number| counted(number, "call")),
            ["0 calls", "1 call", "2 calls", "1,200 calls"]
        );
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn estimates_have_three_digits() {
        let shown = [0, 7, 999, 1004, 1005, 123_456, 999_999].map(about);
        let expected = ["0", "7", "999", "1,000", "1,010", "123,000", "1,000,000"];
        assert_eq!(shown, expected.map(|number| format!("about {number}")));
        assert!(about(u64::MAX).starts_with("about 18,4"));
    }

    #[test]
    fn estimated_bytes_have_a_unit() {
        let shown = [0.0, 640.0, 999.9, 8980.0, 8.64e12, 1e30].map(about_bytes);
        assert_eq!(shown[..5], ["0 B", "640 B", "1.00 kB", "8.98 kB", "8.64 TB"]);
        assert!(shown[5].ends_with(" PB"));
    }
}
