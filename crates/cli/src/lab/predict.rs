//! Asks what the reader thinks will happen, before it does.

use std::io::{self, BufRead, Write};

use weir_lab::{Experiment, Outcome};

/// What the reader said of one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Of which.
    pub what: String,
    /// What.
    pub text: String,
}

impl Answer {
    /// Is it what happened? A number alone means it with any word behind, and capitals do not matter.
    pub fn is_right(&self, seen: &str) -> bool {
        let (text, seen) = (self.text.to_lowercase(), seen.to_lowercase());
        let number = |text: &str| text.split(' ').next().unwrap_or("").replace(',', "").parse::<f64>().ok();
        let numbers = !text.contains(' ') && number(&text).is_some() && number(&text) == number(&seen);
        numbers || weir_lab::fits(&text, &seen)
    }
}

/// Asks on the terminal, or takes the lines of a pipe. An empty line, or none, is no answer.
pub fn ask(experiment: &Experiment) -> io::Result<Vec<Answer>> {
    ask_on(experiment, &mut io::stdin().lock(), &mut io::stdout().lock())
}

fn ask_on(
    experiment: &Experiment,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Vec<Answer>> {
    writeln!(out, "{}: {}.", experiment.name, experiment.about)?;
    writeln!(out, "What do you think? Text or a number; Enter alone skips.\n")?;
    let mut answers = Vec::new();
    let asked = |outcome: &&Outcome| outcome.broken.is_some() && !outcome.expect.is_empty();
    for outcome in experiment.outcome.iter().filter(asked) {
        write!(out, "  {}? ", outcome.what)?;
        out.flush()?;
        let mut line = String::new();
        input.read_line(&mut line)?;
        let text = line.trim().to_string();
        if !text.is_empty() {
            answers.push(Answer { what: outcome.what.clone(), text });
        }
    }
    writeln!(out)?;
    out.flush()?;
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_no_word() {
        let right = |text: &str| Answer { what: String::new(), text: text.into() }.is_right("4 lines");
        assert!(right("4") && right("4 Lines") && right(">= 4 lines"));
        assert!(!right("3") && !right("4 bytes") && !right("lines"));
    }

    #[test]
    fn an_empty_line_and_the_end_are_no_answers() {
        let experiment = weir_lab::find("doubled-at-fork").expect("it is there");
        let mut out = Vec::new();
        let answers = ask_on(&experiment, &mut &b"\n 4 \n"[..], &mut out).expect("memory does not fail");
        assert_eq!(answers, [Answer { what: "in a file".into(), text: "4".into() }]);
        assert!(ask_on(&experiment, &mut &b""[..], &mut out).expect("memory does not fail").is_empty());
        assert!(String::from_utf8_lossy(&out).contains("on a terminal? "));
    }
}
