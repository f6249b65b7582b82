//! Parses and formats durations.

use std::time::Duration;

/// The longest clock tick of a kernel. The kernel divides CPU time into user and system time by what it finds at ticks: a
/// shorter time it counts as one of the two, and neither getrusage(2) nor /proc has a finer division.
pub const TICK_S: f64 = 0.01;

/// The longest duration, in seconds: a century. A deadline after it can still be computed.
const LONGEST_S: f64 = 3.2e9;

/// Parses `200ms`, `5s`, `1m 30s`. A bare number is in seconds, as in sleep(1). As in sizes, a number has digits and at most
/// one point: no sign, no exponent.
pub fn parse(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let too_long = || format!("'{text}' is too large for a duration: use at most 100 years");
    let is_number = !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if let Some(seconds) = trimmed.parse::<f64>().ok().filter(|_| is_number) {
        let seconds = if seconds <= LONGEST_S { Duration::try_from_secs_f64(seconds).ok() } else { None };
        return seconds.ok_or_else(too_long);
    }
    match humantime::parse_duration(trimmed) {
        Ok(duration) if duration.as_secs_f64() <= LONGEST_S => Ok(duration),
        Ok(_) | Err(humantime::DurationError::NumberOverflow) => Err(too_long()),
        Err(_) if trimmed.strip_prefix('-').is_some_and(|rest| parse(rest).is_ok()) => {
            Err(format!("'{text}' is not a duration: it must be positive"))
        }
        Err(_) => {
            Err(format!("'{text}' is not a duration: write a number and a unit, such as 200ms, 5s or 2m"))
        }
    }
}

/// Returns seconds with three significant digits in a fitting unit: `1.25 s`, `340 ms`, `12.0 µs`.
pub fn format_seconds(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => (0.0, "s"),
        s if s >= 1.0 => (seconds, "s"),
        s if s >= 1e-3 => (seconds * 1e3, "ms"),
        s if s >= 1e-6 => (seconds * 1e6, "µs"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Returns a share in percent: `0.540 %`; `below 0.01 %` for less.
pub fn percent(value: f64) -> String {
    if value < 0.01 { "below 0.01 %".into() } else { format!("{} %", three_digits(value)) }
}

/// Returns a number with three significant digits and no exponent: `0.0123`, `1.25`, `12.3`, `1234`.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        0.0 => 0,
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m => (2 - m.log10().floor() as i32).clamp(3, 9) as usize,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(parse("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("2"), Ok(Duration::from_secs(2)));
        assert!(
            parse("-2").is_err() && parse("soon").is_err() && parse("").is_err() && parse("1e99").is_err()
        );
    }

    #[test]
    fn a_number_is_written_as_in_a_size() {
        for text in ["1e3", "+1", "inf", "nan", "0x10", "."] {
            assert!(parse(text).is_err_and(|error| error.contains("write a number and a unit")), "{text}");
        }
        for text in ["18446744073709551615", "18446744073709551615s", "99999999999999999999ms", "1000y"] {
            assert!(parse(text).is_err_and(|error| error.contains("too large")), "{text}: {:?}", parse(text));
        }
        for text in ["-1", "-200ms"] {
            assert!(parse(text).is_err_and(|error| error.contains("must be positive")), "{text}");
        }
        assert_eq!(parse("0.5"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn three_digits_and_a_unit() {
        for (seconds, text) in [
            (1.25, "1.25 s"),
            (0.34, "340 ms"),
            (12e-6, "12.0 µs"),
            (9.996, "10.0 s"),
            (0.0, "0 s"),
            (5e-9, "5.00 ns"),
            (125.0, "125 s"),
        ] {
            assert_eq!(format_seconds(seconds), text);
        }
        assert_eq!(three_digits(0.0123), "0.0123");
    }
}
