//! Checks a learner's solution of an exercise by its behaviour. An exercise is one file of this folder: a table of
//! requirements, each with its text, its references and a test.

mod build;
mod calls;
mod check_directory;
mod copy;
mod dots;
mod expect;
mod log_message;
mod report;
mod run;
mod sensor_csv;
mod tail;
mod tr;
mod write_bytes;

use std::iter;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use weir_model::lab::check::CheckReport;

use crate::Error;
use build::Solution;
use check_directory::CheckDirectory;

/// A program that the learner writes.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Exercise {
    pub name: &'static str,
    /// The program's arguments, as in a usage line.
    pub usage: &'static str,
    /// One sentence that describes the program.
    pub about: &'static str,
    pub requirements: &'static [Requirement],
}

/// A requirement of an exercise.
#[derive(Debug)]
pub struct Requirement {
    /// The name in JSON, unique within the exercise.
    pub id: &'static str,
    /// The requirement in one sentence.
    pub what: &'static str,
    /// References to man pages and experiments.
    pub see: &'static str,
    test: fn(&CheckDirectory) -> Test,
}

type Test = Result<(), CheckFailure>;

/// The reason why a test did not pass.
#[derive(Debug)]
enum CheckFailure {
    /// The solution does not meet the requirement; the text says what was observed.
    Solution(String),
    /// The test cannot run on this machine; the text says why.
    Absent(String),
    /// The check itself failed.
    Own(Error),
}

impl From<Error> for CheckFailure {
    fn from(error: Error) -> CheckFailure {
        CheckFailure::Own(error)
    }
}

/// Returns the failure of a solution, with what was observed.
fn wrong<T>(observed: impl Into<String>) -> Result<T, CheckFailure> {
    Err(CheckFailure::Solution(observed.into()))
}

/// All exercises, by name.
pub const EXERCISES: [&Exercise; 7] = [
    &copy::EXERCISE,
    &dots::EXERCISE,
    &log_message::EXERCISE,
    &sensor_csv::EXERCISE,
    &tail::EXERCISE,
    &tr::EXERCISE,
    &write_bytes::EXERCISE,
];

/// Builds solutions and checks them against their exercises.
#[derive(Debug)]
pub struct ExerciseJudge<'a> {
    /// The weir executable that traces the solution.
    pub weir: PathBuf,
    /// The check stops soon after this flag is set, for example by a handler of SIGINT.
    pub stop: &'a AtomicBool,
}

/// Returns the exercise that a file is named for: `tail.c`, `tail-2.py` and `log-message.c` name one.
pub fn exercise_of(program: &Path) -> Option<&'static Exercise> {
    let stem = program.file_stem()?.to_str()?.replace('-', "_");
    let named = |exercise: &&&Exercise| {
        let rest = stem.strip_prefix(exercise.name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    EXERCISES.iter().find(named).copied()
}

/// Returns the exercise with this name. Hyphens and underscores are the same.
pub fn exercise(name: &str) -> Option<&'static Exercise> {
    EXERCISES.into_iter().find(|exercise| exercise.name == name.replace('-', "_"))
}

impl ExerciseJudge<'_> {
    /// Builds the program and tests every requirement of the exercise.
    pub fn judge(&self, program: &Path, exercise: &'static Exercise) -> Result<CheckReport, Error> {
        let mut report = report::new(exercise, program);
        let solution = match Solution::build(program, self)? {
            Ok(solution) => solution,
            Err(output) => return Ok(report::build_failed(report, output)),
        };
        report::add_build(&mut report, &solution);
        for (requirement, outcome) in exercise.requirements.iter().zip(test_all(exercise, &solution)) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            report::add(&mut report, requirement, outcome)?;
        }
        Ok(report)
    }
}

/// Tests that run at the same time. They sleep most of the time, so more than the CPUs are useful.
const PARALLEL_TESTS: usize = 6;

/// Tests every requirement. Returns the outcomes in the order of the requirements.
fn test_all(exercise: &Exercise, solution: &Solution) -> Vec<Test> {
    let next = AtomicUsize::new(0);
    let test_next = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let requirement = exercise.requirements.get(at)?;
        Some((
            at,
            CheckDirectory::new(solution)
                .map_err(CheckFailure::from)
                .and_then(|dir| (requirement.test)(&dir)),
        ))
    };
    let mut outcomes: Vec<_> = thread::scope(|scope| {
        let work = || iter::from_fn(&test_next).collect::<Vec<_>>();
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (1..PARALLEL_TESTS).map_while(start).collect();
        let own = work();
        // A panic in a test is a bug in weir and stays a panic.
        let joined = workers.into_iter().flat_map(|one| one.join().unwrap_or_else(|bug| resume_unwind(bug)));
        own.into_iter().chain(joined).collect()
    });
    outcomes.sort_by_key(|(at, _): &(usize, Test)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{EXERCISES, exercise, exercise_of};

    #[test]
    fn a_file_name_determines_the_exercise() {
        let of = |path: &str| exercise_of(Path::new(path)).map(|exercise| exercise.name);
        assert_eq!(of("my/tail.c"), Some("tail"));
        assert_eq!(of("tail-2.py"), Some("tail"));
        assert_eq!(of("log-message.c"), Some("log_message"));
        assert_eq!(of("translate.c"), None, "tr followed by letters is another word");
        assert_eq!(of("tr"), Some("tr"));
        assert_eq!(exercise("sensor-csv").map(|exercise| exercise.name), Some("sensor_csv"));
    }

    #[test]
    fn hints_name_experiments_that_exist() {
        for requirement in EXERCISES.iter().flat_map(|exercise| exercise.requirements) {
            let named = requirement.see.split("weir lab ").skip(1);
            for name in named.map(|rest| rest.split([' ', ',', ';']).next().unwrap_or_default()) {
                assert!(crate::find(name).is_ok(), "{}: {name}", requirement.id);
            }
            assert!(!requirement.see.is_empty(), "{}", requirement.id);
        }
    }

    #[test]
    fn the_requirements_of_an_exercise_have_different_names() {
        for exercise in EXERCISES {
            let mut ids: Vec<_> = exercise.requirements.iter().map(|one| one.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), exercise.requirements.len(), "{}", exercise.name);
        }
    }
}
