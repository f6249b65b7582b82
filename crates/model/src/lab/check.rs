//! The result of `weir lab check`: a solution beside the requirements of its exercise (schema weir-lab-check/1).

use serde::Serialize;

/// Value of [`CheckReport::schema`].
pub const SCHEMA: &str = "weir-lab-check/1";

/// A solution beside the requirements of its exercise.
#[derive(Debug, Serialize)]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the exercise.
    pub exercise: &'static str,
    /// Path of the solution, as given.
    pub program: String,
    /// Compiler command; `None` for a program that needs no compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Output of the compiler, where it succeeded with warnings.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// Every requirement in the exercise's order; only `compiles` if the compiler fails.
    pub requirements: Vec<JudgedRequirement>,
    /// No requirement has [`RequirementStatus::No`].
    pub well: bool,
}

/// One requirement and its result.
#[derive(Debug, Serialize)]
pub struct JudgedRequirement {
    /// Short name, unique in the exercise.
    pub id: &'static str,
    /// The requirement in a sentence.
    pub what: &'static str,
    /// Result of the test.
    pub met: RequirementStatus,
    /// The observed fault, or why this machine cannot run the test.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// Man pages and experiments about the requirement.
    pub see: &'static str,
}

/// Result of a requirement's test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum RequirementStatus {
    Yes,
    No,
    /// The test cannot run on this machine.
    Unknown,
}

/// An exercise in the list of exercises.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExerciseSummary {
    /// Name and arguments of the program.
    pub usage: String,
    /// Purpose of the program.
    pub about: String,
    /// Short name and sentence of each requirement.
    pub requirements: Vec<(String, String)>,
}

impl CheckReport {
    /// Counts the requirements that the solution meets.
    pub fn met(&self) -> usize {
        self.requirements.iter().filter(|one| one.met == RequirementStatus::Yes).count()
    }
}
