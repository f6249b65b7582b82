//! Parsers of option values that several verbs share.

use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use weir_model::{Size, duration};

/// Parses a process ID, which is at least 1.
pub fn parse_pid(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(format!("'{text}' is not a PID")),
    }
}

/// Parses a duration that is longer than zero.
pub fn parse_nonzero_duration(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("0: use a longer time, such as 5s".into()),
        duration => Ok(duration),
    }
}

/// Parses a size of at least 1 byte.
pub fn parse_nonzero_size(text: &str) -> Result<Size, String> {
    match text.parse::<Size>().map_err(|error| error.to_string())? {
        Size(0) => Err("0 bytes: use at least 1 byte".into()),
        size => Ok(size),
    }
}

/// A parser that accepts every string and offers the known words for completion.
///
/// The verb checks the word itself: it knows which words fit together, and suggests a similar one.
#[derive(Clone)]
pub struct CompletedWords(Vec<&'static str>);

/// Returns a parser that offers `known` for completion.
pub fn completed_words(known: impl IntoIterator<Item = &'static str>) -> CompletedWords {
    CompletedWords(known.into_iter().collect())
}

impl TypedValueParser for CompletedWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_is_a_positive_number() {
        assert_eq!(parse_pid("4711"), Ok(4711));
        for text in ["", "0", "-1", "abc", "4294967296"] {
            assert_eq!(parse_pid(text), Err(format!("'{text}' is not a PID")));
        }
    }

    #[test]
    fn a_duration_may_have_to_be_longer_than_zero() {
        assert_eq!(parse_nonzero_duration("5s"), Ok(Duration::from_secs(5)));
        assert!(parse_nonzero_duration("0").is_err() && parse_nonzero_duration("soon").is_err());
    }
}
