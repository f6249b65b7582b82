//! The reader's predictions: asked before an experiment runs, then compared with the outcomes.

use std::io::{self, BufRead, Write};

use weir_model::lab::ProgramVersion;

use crate::{Experiment, Outcome, fits, library};

/// The reader's prediction for one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// Identifies the outcome, as [`Outcome::what`] does.
    pub what: String,
    /// The reader's answer, in the reader's words.
    pub text: String,
}

impl Prediction {
    /// Returns whether the prediction fits the observed value. Case does not matter, and a number alone fits a value
    /// that starts with the same number.
    pub fn is_right(&self, observed: &str) -> bool {
        let (text, observed) = (self.text.to_lowercase(), observed.to_lowercase());
        let number = |text: &str| text.split(' ').next().unwrap_or("").replace(',', "").parse::<f64>().ok();
        let is_number = !text.contains(' ') && number(&text).is_some();
        is_number && number(&text) == number(&observed) || fits(&text, &observed)
    }
}

/// Returns whether [`ask`] asks about an outcome.
pub(crate) fn is_asked(outcome: &Outcome) -> bool {
    outcome.broken.is_some() && !outcome.expect.is_empty()
}

/// Writes the program to `out`, or the common expectation if there is none: the description of an experiment names its
/// result. Then writes one question for each outcome of the broken program, and reads one line of `input` as the answer.
/// An empty line and the end of the input are no prediction.
pub fn ask(
    experiment: &Experiment,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Vec<Prediction>> {
    match library::has_program(experiment, ProgramVersion::Broken) {
        true => writeln!(out, "{}\n", library::source(experiment, ProgramVersion::Broken).trim_end())?,
        false => writeln!(out, "{}: many expect: {}", experiment.name, experiment.expect)?,
    }
    writeln!(out, "What will happen? Type text or a number; press Enter to skip.\n")?;
    let mut predictions = Vec::new();
    for outcome in experiment.outcome.iter().filter(|outcome| is_asked(outcome)) {
        write!(out, "  {}? ", outcome.what)?;
        out.flush()?;
        let mut line = String::new();
        input.read_line(&mut line)?;
        let text = line.trim().to_string();
        if !text.is_empty() {
            predictions.push(Prediction { what: outcome.what.clone(), text });
        }
    }
    writeln!(out)?;
    out.flush()?;
    Ok(predictions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_fits_without_its_unit() {
        let is_right = |text: &str| Prediction { what: String::new(), text: text.into() }.is_right("4 lines");
        assert!(is_right("4") && is_right("4 Lines") && is_right(">= 4 lines"));
        assert!(!is_right("3") && !is_right("4 bytes") && !is_right("lines"));
    }

    #[test]
    fn an_empty_line_and_the_end_of_the_input_are_no_predictions() {
        let experiment = crate::find("doubled-at-fork").expect("a built-in experiment");
        let mut out = Vec::new();
        let predictions = ask(&experiment, &mut &b"\n 4 \n"[..], &mut out).expect("memory does not fail");
        assert_eq!(predictions, [Prediction { what: "in a file".into(), text: "4".into() }]);
        assert!(ask(&experiment, &mut &b""[..], &mut out).expect("memory does not fail").is_empty());
        assert!(String::from_utf8_lossy(&out).contains("on a terminal? "));
    }

    #[test]
    fn the_question_does_not_name_the_answer() {
        for experiment in crate::all().expect("built-in experiments") {
            let mut out = Vec::new();
            ask(&experiment, &mut &b""[..], &mut out).expect("memory does not fail");
            let text = String::from_utf8_lossy(&out).into_owned();
            assert!(!text.contains(&experiment.about), "{text}");
            let has_program = library::has_program(&experiment, ProgramVersion::Broken);
            assert!(has_program || text.contains(&experiment.expect), "{text}");
        }
    }
}
