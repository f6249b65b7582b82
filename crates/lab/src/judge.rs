//! Compares the values that a check observed with those that the experiment states.
//!
//! A stated value is a literal, `*` for any value, or one of `>= N`, `<= N`, `A..B` (both bounds included), each
//! followed by the words after the number. ` | ` separates alternatives.

use weir_model::lab::{LabOutcome, ProgramVersion};

use crate::{Experiment, Outcome};

/// A value that a check observed: a line `WHAT<TAB>VALUE` of check.sh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedValue {
    /// The quantity, as in the outcomes of lab.toml.
    pub what: String,
    /// The observed value, with its unit.
    pub value: String,
}

/// Compares the observed values of one program version with the experiment's outcomes.
pub fn judge(experiment: &Experiment, version: ProgramVersion, seen: &[CheckedValue]) -> Vec<LabOutcome> {
    let stated = |outcome: &Outcome| match version {
        ProgramVersion::Broken => outcome.broken.clone(),
        ProgramVersion::Fixed => outcome.fixed.clone(),
    };
    let with_stated = experiment.outcome.iter().filter_map(|outcome| Some((outcome, stated(outcome)?)));
    with_stated
        .map(|(outcome, stated)| {
            let found = seen.iter().find(|one| one.what == outcome.what);
            let value = found.map_or("not reported by the check", |one| one.value.as_str());
            LabOutcome {
                version,
                what: outcome.what.clone(),
                expected: outcome.expect.clone(),
                agrees: found.is_some() && fits(&stated, value),
                as_expected: outcome.expect.is_empty() || fits(&outcome.expect, value),
                seen: value.to_string(),
                stated,
            }
        })
        .collect()
}

/// Returns whether a value fits a stated value.
pub fn fits(pattern: &str, value: &str) -> bool {
    pattern.split(" | ").any(|one| fits_one(one.trim(), value.trim()))
}

fn fits_one(pattern: &str, value: &str) -> bool {
    if pattern == "*" || pattern == value {
        return true;
    }
    let (number, words) = number_and_words(value);
    let Some(number) = number else { return false };
    let bounds = |text: &str| -> Option<(f64, f64, String)> {
        if let (Some(exactly), words) = number_and_words(text) {
            return Some((exactly, exactly, words));
        }
        if let Some(rest) = text.strip_prefix(">=") {
            let (least, words) = number_and_words(rest.trim());
            return Some((least?, f64::INFINITY, words));
        }
        if let Some(rest) = text.strip_prefix("<=") {
            let (most, words) = number_and_words(rest.trim());
            return Some((f64::NEG_INFINITY, most?, words));
        }
        let (least, rest) = text.split_once("..")?;
        let (most, words) = number_and_words(rest);
        Some((least.replace(',', "").parse().ok()?, most?, words))
    };
    bounds(pattern).is_some_and(|(least, most, of)| number >= least && number <= most && of == words)
}

/// Splits a value into its number and the words after it: `5,000,000 writes` into 5000000 and `writes`.
fn number_and_words(text: &str) -> (Option<f64>, String) {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    (first.replace(',', "").parse().ok(), rest.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_literal_fits_itself_only() {
        assert!(fits("4 lines", "4 lines") && !fits("4 lines", "3 lines") && fits("*", "anything"));
    }

    #[test]
    fn bounds_are_inclusive_and_need_the_same_words() {
        assert!(fits(">= 10 writes", "10 writes") && !fits(">= 10 writes", "9 writes"));
        assert!(fits("<= 2 lines", "2 lines") && !fits("<= 2 lines", "2 bytes"));
        assert!(fits("24..40 writes", "25 writes") && fits("24..40 writes", "40 writes"));
        assert!(!fits("24..40 writes", "41 writes") && !fits("24..40 writes", "many writes"));
        assert!(fits(">= 5,000 calls", "5,000,000 calls") && fits("5,000 calls", "5000 calls"));
    }

    #[test]
    fn one_of_several_is_enough() {
        assert!(fits("empty | 0 bytes", "0 bytes") && !fits("empty | 0 bytes", "1 bytes"));
    }
}
