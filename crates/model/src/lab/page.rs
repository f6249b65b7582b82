//! An experiment as `weir lab NAME` shows it, and as a line of a list of experiments.

use std::time::Duration;

use super::{LabOutcome, LabVerdict, PreviousRun, ProgramVersion, PublishedTable};

/// One experiment and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct LabPage {
    /// Name of the experiment.
    pub name: String,
    /// Letter and title of the theme: `B · where the bytes are`.
    pub theme: String,
    /// The result that most people expect.
    pub expect: String,
    /// The cause of the result.
    pub why: String,
    /// The change that removes the fault; empty if there is none.
    pub fix: String,
    /// Verdict for both programs together.
    pub verdict: LabVerdict,
    /// Observed outcomes, in the order of lab.toml.
    pub outcomes: Vec<PageOutcome>,
    /// Drawing of the run, line by line; empty for most experiments.
    pub picture: Vec<String>,
    /// Published tables beside this machine's figures.
    pub tables: Vec<PublishedTable>,
    /// Compiler commands of the programs.
    pub commands: Vec<String>,
    /// Options of `weir lab` that show more of this experiment on this machine.
    pub options: Vec<&'static str>,
    /// Wall-clock time of the whole experiment.
    pub elapsed: Duration,
}

/// One observed quantity in both versions of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageOutcome {
    /// Name of the quantity.
    pub what: String,
    /// Value that most people expect; empty if there is none.
    pub expect: String,
    /// The reader's prediction; `None` without one.
    pub prediction: Option<JudgedPrediction>,
    /// Value of the broken program.
    pub broken: Option<ObservedValue>,
    /// Value of the fixed program.
    pub fixed: Option<ObservedValue>,
}

impl PageOutcome {
    /// Returns the value of a version.
    pub fn value_mut(&mut self, version: ProgramVersion) -> &mut Option<ObservedValue> {
        match version {
            ProgramVersion::Broken => &mut self.broken,
            ProgramVersion::Fixed => &mut self.fixed,
        }
    }
}

/// A prediction of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedPrediction {
    /// The prediction in the reader's words.
    pub text: String,
    /// Whether the prediction fits the observed value.
    pub is_right: bool,
}

/// An observed value and its comparison with statement and expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedValue {
    /// The value as text.
    pub seen: String,
    /// The value is as the experiment states.
    pub agrees: bool,
    /// The value is the one that most people expect; `None` without an expectation.
    pub expected: Option<bool>,
}

impl From<&LabOutcome> for ObservedValue {
    fn from(outcome: &LabOutcome) -> Self {
        let expected = (!outcome.expected.is_empty()).then_some(outcome.as_expected);
        Self { seen: outcome.seen.clone(), agrees: outcome.agrees, expected }
    }
}

/// One line of the list or of the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabLine {
    /// Letter and title of the theme: `B · where the bytes are`.
    pub theme: String,
    /// Name of the experiment.
    pub name: String,
    /// Description in one line, from lab.toml.
    pub about: String,
    /// Observed outcomes; empty in the list.
    pub seen: String,
    /// The outcomes are as stated; `None` if the experiment did not run.
    pub agrees: Option<bool>,
    /// The last run on this machine.
    pub previous: Option<PreviousRun>,
    /// The reason why the experiment did not run, or the difference to its statement.
    pub reason: String,
}
