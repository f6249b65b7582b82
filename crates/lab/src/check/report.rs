//! What was judged: for a screen, and as JSON (schema weir-lab-check/1).

use std::path::Path;

use serde::Serialize;

use super::build::Solution;
use super::{Exercise, Requirement, Test, Wrong};
use crate::Error;

/// A solution beside what the exercise asks.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// The exercise.
    pub exercise: &'static str,
    /// The file that was handed in.
    pub program: String,
    /// How it was compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the compiler warned of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// Every requirement, in the exercise's order; only `compiles` when that fails.
    pub requirements: Vec<Judged>,
    /// Is nothing wrong?
    pub well: bool,
}

/// One requirement.
#[derive(Debug, Serialize)]
pub struct Judged {
    /// Its short name.
    pub id: &'static str,
    /// What is asked.
    pub what: &'static str,
    /// Whether it is so.
    pub met: Met,
    /// What was seen, or why it cannot be told here.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// Where to look.
    pub see: &'static str,
}

/// Whether a requirement is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Met {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// This machine cannot tell.
    Unknown,
}

impl Report {
    pub(super) fn of(exercise: &Exercise, program: &Path) -> Report {
        Report {
            schema: "weir-lab-check/1",
            exercise: exercise.name,
            program: program.display().to_string(),
            command: None,
            warnings: String::new(),
            requirements: Vec::new(),
            well: true,
        }
    }

    pub(super) fn built_by(&mut self, solution: &Solution) {
        self.command.clone_from(&solution.command);
        self.warnings.clone_from(&solution.warnings);
    }

    pub(super) fn not_built(mut self, seen: String) -> Report {
        let (what, see) = ("the C compiler takes it", "the first error that the compiler names");
        self.requirements.push(Judged { id: "compiles", what, met: Met::No, seen, see });
        self.well = false;
        self
    }

    pub(super) fn add(&mut self, requirement: &Requirement, outcome: Test) -> Result<(), Error> {
        let (met, seen) = match outcome {
            Ok(()) => (Met::Yes, String::new()),
            Err(Wrong::Solution(seen)) => (Met::No, seen),
            Err(Wrong::Absent(why)) => (Met::Unknown, why),
            Err(Wrong::Own(error)) => return Err(error),
        };
        self.well &= met != Met::No;
        let Requirement { id, what, see, .. } = *requirement;
        self.requirements.push(Judged { id, what, met, seen, see });
        Ok(())
    }

    /// How many requirements are met.
    pub fn met(&self) -> usize {
        self.requirements.iter().filter(|one| one.met == Met::Yes).count()
    }
}
