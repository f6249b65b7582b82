//! Judges a learner's own solution of an exercise on what it does. An exercise is one file here: a table of
//! requirements, each with what is asked, where to look, and a test.

mod build;
mod calls;
mod copy;
mod dots;
mod log_message;
mod place;
mod report;
mod run;
mod sensor_csv;
mod tail;
mod tr;
mod want;
mod write_bytes;

use std::iter;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use weir_model::lab::check::CheckReport;

use crate::Error;
use build::Solution;
use place::Place;

/// Something to be written oneself.
#[derive(Debug)]
pub struct Exercise {
    /// Its name.
    pub name: &'static str,
    /// Its arguments.
    pub usage: &'static str,
    /// What the program is for.
    pub about: &'static str,
    /// What is asked of it.
    pub requirements: &'static [Requirement],
}

/// One thing that is asked.
#[derive(Debug)]
pub struct Requirement {
    /// A short name.
    pub id: &'static str,
    /// What is asked.
    pub what: &'static str,
    /// Man pages and experiments that show it.
    pub see: &'static str,
    test: fn(&Place) -> Test,
}

type Test = Result<(), Wrong>;

/// Why a test did not go well.
#[derive(Debug)]
enum Wrong {
    /// The solution's fault: what was seen.
    Solution(String),
    /// This machine cannot tell, with why.
    Absent(String),
    /// The judge's own trouble.
    Own(Error),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Wrong {
        Wrong::Own(error)
    }
}

/// For a test that saw something wrong.
fn wrong<T>(seen: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Solution(seen.into()))
}

/// All there are.
pub const EXERCISES: [&Exercise; 7] = [
    &copy::EXERCISE,
    &dots::EXERCISE,
    &log_message::EXERCISE,
    &sensor_csv::EXERCISE,
    &tail::EXERCISE,
    &tr::EXERCISE,
    &write_bytes::EXERCISE,
];

/// How to judge.
#[derive(Debug)]
pub struct Judge<'a> {
    /// The weir that watches.
    pub weir: PathBuf,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
}

/// The exercise that a file's name says: `tail.c`, `tail-2.py` and `log-message.c` do.
pub fn exercise_of(program: &Path) -> Option<&'static Exercise> {
    let stem = program.file_stem()?.to_str()?.replace('-', "_");
    let named = |exercise: &&&Exercise| {
        let rest = stem.strip_prefix(exercise.name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    EXERCISES.iter().find(named).copied()
}

/// The exercise of this name.
pub fn exercise(name: &str) -> Option<&'static Exercise> {
    EXERCISES.into_iter().find(|exercise| exercise.name == name.replace('-', "_"))
}

impl Judge<'_> {
    /// Builds the program and tries everything that the exercise asks.
    pub fn judge(&self, program: &Path, exercise: &'static Exercise) -> Result<CheckReport, Error> {
        let mut report = report::new(exercise, program);
        let solution = match Solution::build(program, self)? {
            Ok(solution) => solution,
            Err(said) => return Ok(report::build_failed(report, said)),
        };
        report::add_build(&mut report, &solution);
        for (requirement, outcome) in exercise.requirements.iter().zip(tried(exercise, &solution)) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            report::add(&mut report, requirement, outcome)?;
        }
        Ok(report)
    }
}

/// Most tests wait for something most of the time, so several are tried side by side.
const AT_A_TIME: usize = 6;

/// Tries every requirement; the outcomes keep their order.
fn tried(exercise: &Exercise, solution: &Solution) -> Vec<Test> {
    let next = AtomicUsize::new(0);
    let try_next = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let requirement = exercise.requirements.get(at)?;
        Some((at, Place::new(solution).map_err(Wrong::from).and_then(|place| (requirement.test)(&place))))
    };
    let mut outcomes: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..AT_A_TIME).map(|_| scope.spawn(|| iter::from_fn(&try_next).collect::<Vec<_>>())).collect();
        // A test that panics is a bug of weir's, and said as one.
        workers.into_iter().flat_map(|one| one.join().unwrap_or_else(|bug| resume_unwind(bug))).collect()
    });
    outcomes.sort_by_key(|(at, _): &(usize, Test)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{EXERCISES, exercise, exercise_of};

    #[test]
    fn the_files_name_says_which() {
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
    fn an_exercise_asks_nothing_twice() {
        for exercise in EXERCISES {
            let mut ids: Vec<_> = exercise.requirements.iter().map(|one| one.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), exercise.requirements.len(), "{}", exercise.name);
        }
    }
}
