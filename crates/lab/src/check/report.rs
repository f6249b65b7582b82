//! Fills in the [`CheckReport`] of a solution.

use std::path::Path;

use weir_model::lab::check::{CheckReport, JudgedRequirement, RequirementStatus, SCHEMA};

use super::build::Solution;
use super::{CheckFailure, Exercise, Requirement, Test};
use crate::Error;

/// Makes a report without requirements.
pub(super) fn new(exercise: &Exercise, program: &Path) -> CheckReport {
    CheckReport {
        schema: SCHEMA,
        exercise: exercise.name,
        program: program.display().to_string(),
        command: None,
        warnings: String::new(),
        requirements: Vec::new(),
        well: true,
    }
}

/// Adds the compiler's command and warnings.
pub(super) fn add_build(report: &mut CheckReport, solution: &Solution) {
    report.command.clone_from(&solution.command);
    report.warnings.clone_from(&solution.warnings);
}

/// Turns the report into that of a source that the compiler rejects; `seen` is the compiler's output.
pub(super) fn build_failed(mut report: CheckReport, seen: String) -> CheckReport {
    let (what, see) = ("it compiles", "the compiler's first error");
    let met = RequirementStatus::No;
    report.requirements.push(JudgedRequirement { id: "compiles", what, met, seen, see });
    report.well = false;
    report
}

/// Adds the outcome of one test. Fails if the test itself failed.
pub(super) fn add(report: &mut CheckReport, requirement: &Requirement, outcome: Test) -> Result<(), Error> {
    let (met, seen) = match outcome {
        Ok(()) => (RequirementStatus::Yes, String::new()),
        Err(CheckFailure::Solution(seen)) => (RequirementStatus::No, seen),
        Err(CheckFailure::Absent(why)) => (RequirementStatus::Unknown, why),
        Err(CheckFailure::Own(error)) => return Err(error),
    };
    report.well &= met != RequirementStatus::No;
    let Requirement { id, what, see, .. } = *requirement;
    report.requirements.push(JudgedRequirement { id, what, met, seen, see });
    Ok(())
}
