//! Parses and formats sizes in bytes.
//!
//! The units are those of dd(1) and GNU coreutils: a bare letter or one with `iB` is a power of 1024, a letter with `B`
//! is a power of 1000. `64K` and `64KiB` are 65,536 bytes, `64kB` and `64KB` are 64,000.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Size(pub u64);

/// Error of parsing a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeError {
    /// The text does not begin with a digit.
    NoNumber(String),
    /// The text after the number is not a unit.
    UnknownUnit(String),
    /// The size is larger than that of any file (2^63 - 1).
    TooLarge(String),
    /// The size is not a whole number of bytes, for example `0.3`.
    Fraction(String),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber(text) => {
                write!(
                    f,
                    "'{text}' is not a size: write a number and a unit, such as 4096, 64K, 1MiB or 100MB"
                )
            }
            Self::UnknownUnit(unit) => write!(
                f,
                "'{unit}' is not a unit: use B, K, M, G, T (1024), kB, MB, GB (1000) or KiB, MiB, GiB (1024)"
            ),
            Self::TooLarge(text) => write!(f, "'{text}' is more than a file can hold (8 EiB)"),
            Self::Fraction(text) => write!(f, "'{text}' is not a whole number of bytes"),
        }
    }
}

impl std::error::Error for SizeError {}

/// Returns the bytes in one `unit`; `None` for an unknown unit.
fn factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let (power, base) = match unit.as_str() {
        "" | "b" => (0, 1),
        letters => {
            let power = "kmgtp".find(letters.chars().next()?)? as u32 + 1;
            match &letters[1..] {
                "" | "ib" => (power, 1024),
                "b" => (power, 1000),
                _ => return None,
            }
        }
    };
    Some(u64::pow(base, power))
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let trimmed = text.trim();
        let digits =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number = number.replace('_', "");
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(SizeError::NoNumber(text.into()));
        }
        let unit = unit.trim();
        let factor = factor(unit).ok_or_else(|| SizeError::UnknownUnit(unit.into()))?;
        let bytes = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(factor),
            Err(_) if number.contains('.') => {
                let value =
                    number.parse::<f64>().map_err(|_| SizeError::NoNumber(text.into()))? * factor as f64;
                if value.fract() != 0.0 {
                    return Err(SizeError::Fraction(text.into()));
                }
                (value < i64::MAX as f64).then_some(value as u64)
            }
            Err(_) => None,
        };
        bytes.filter(|&b| b <= i64::MAX as u64).map(Size).ok_or_else(|| SizeError::TooLarge(text.into()))
    }
}

/// Writes a multiple of a power of 1024 or 1000 exactly (`64 KiB`, `100 MB`), another size with three digits.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        for (unit, name) in [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
            if bytes >= unit && bytes.is_multiple_of(unit) {
                return f.pad(&format!("{} {name}", bytes / unit));
            }
        }
        for (unit, name) in [(1_000_000_000u64, "GB"), (1_000_000, "MB"), (1_000, "kB")] {
            if bytes >= unit && bytes.is_multiple_of(unit) {
                return f.pad(&format!("{} {name}", bytes / unit));
            }
        }
        for (unit, name) in [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
            if bytes >= unit {
                let value = bytes as f64 / unit as f64;
                let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
                return f.pad(&format!("{value:.digits$} {name}"));
            }
        }
        f.pad(&format!("{bytes} B"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_as_in_dd() {
        for (text, bytes) in [
            ("1", 1),
            ("4096B", 4096),
            ("64K", 65536),
            ("64k", 65536),
            ("64KiB", 65536),
            ("64kB", 64000),
            ("100MB", 100_000_000),
            ("1MiB", 1 << 20),
            ("1.5K", 1536),
            ("100_000", 100_000),
            (" 2 GiB ", 2 << 30),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_have_an_error() {
        assert_eq!("4x".parse::<Size>(), Err(SizeError::UnknownUnit("x".into())));
        assert_eq!("K".parse::<Size>(), Err(SizeError::NoNumber("K".into())));
        assert_eq!("".parse::<Size>(), Err(SizeError::NoNumber("".into())));
        assert_eq!("-1".parse::<Size>(), Err(SizeError::NoNumber("-1".into())));
        assert_eq!("0.3".parse::<Size>(), Err(SizeError::Fraction("0.3".into())));
        assert!(matches!("99999999T".parse::<Size>(), Err(SizeError::TooLarge(_))));
        assert!(matches!("99999999999999999999".parse::<Size>(), Err(SizeError::TooLarge(_))));
    }

    #[test]
    fn multiples_of_a_unit_are_exact() {
        for (bytes, text) in [
            (1, "1 B"),
            (512, "512 B"),
            (1000, "1 kB"),
            (4096, "4 KiB"),
            (100_000_000, "100 MB"),
            (1 << 24, "16 MiB"),
            (5000001, "4.77 MiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,12}") {
            let _ = text.parse::<Size>();
        }

        #[test]
        fn bytes_come_back(bytes in 0u64..=i64::MAX as u64) {
            prop_assert_eq!(bytes.to_string().parse(), Ok(Size(bytes)));
        }
    }
}
