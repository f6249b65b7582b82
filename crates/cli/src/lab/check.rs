//! `weir lab check`: the command line, and what is done with it.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_lab::Error;
use weir_lab::check::{self, EXERCISES, Exercise, Judge};
use weir_model::lab::check::ExerciseSummary;

use super::{print, stop_flag};
use crate::output::OutputOptions;
use crate::values::completed_words;
use crate::{FAILED, USAGE};
use weir_tui::style::stdout_style;

/// Judge your own solution of an exercise
///
/// A C source is compiled (cc -O1 -Wall), a program or script taken as it is. It is run many times in private
/// directories with odd inputs, under weir's tracer, on a full disk, and killed; each requirement of the exercise is
/// then met or not, with what was seen and where to look.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-lab-check/1); - is standard output")))]
#[command(mut_arg("quiet", |arg| arg.help("No screen: only the file, errors and the status")))]
pub struct Args {
    /// A C source (.c), or anything that can be executed
    #[arg(required_unless_present = "list")]
    program: Option<PathBuf>,

    /// The exercise, when the file's name does not say it
    #[arg(long = "as", value_name = "EXERCISE", value_parser = completed_words(EXERCISES.map(|exercise| exercise.name)))]
    exercise: Option<String>,

    /// Show what the exercises ask, or with --as what that one asks
    #[arg(long, conflicts_with_all = ["program", "json"])]
    list: bool,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir lab check --list                what each exercise asks
  weir lab check --list --as tail      what tail asks
  weir lab check copy.c                compile and judge it
  weir lab check mine.py --as tail     a script, whose name does not say the exercise
  weir lab check ./dots --json -       the verdicts for other programs

Exit status: 0 every requirement is met, or cannot be told here; 1 one is not met; 2 wrong usage; 130 stopped by
Ctrl-C.";

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    let exercise = match exercise(args) {
        Ok(exercise) => exercise,
        Err(text) => {
            complain!("weir: {text}");
            return ExitCode::from(USAGE);
        }
    };
    match judged(args, exercise) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(Error::Stopped) => ExitCode::from(130),
        Err(error) => {
            complain!("weir: {error}");
            // A file that is not there, or is no program, is the command line's fault.
            ExitCode::from(if matches!(error, Error::File { .. }) { USAGE } else { FAILED })
        }
    }
}

/// The one that is meant; none: all of them.
fn exercise(args: &Args) -> Result<Option<&'static Exercise>, String> {
    let names = || EXERCISES.map(|exercise| exercise.name).join(", ");
    match (&args.exercise, &args.program) {
        (Some(name), _) => {
            check::exercise(name).map(Some).ok_or_else(|| format!("there is no exercise {name}: {}", names()))
        }
        (None, Some(program)) => check::exercise_of(program).map(Some).ok_or_else(|| {
            format!("{}: its name says no exercise; add --as with one of: {}", program.display(), names())
        }),
        (None, None) => Ok(None),
    }
}

fn judged(args: &Args, exercise: Option<&'static Exercise>) -> Result<bool, Error> {
    let (Some(program), Some(exercise)) = (&args.program, exercise) else {
        return Ok(print(&list(exercise)));
    };
    let mut output = match args.output.open() {
        Ok(output) => output,
        Err(text) => return Ok(super::complained(&text)),
    };
    let stop = stop_flag();
    let weir = super::executable();
    let report = Judge { weir, stop: &stop }.judge(program, exercise)?;
    let shown = !output.shows_screen() || print(&weir_report::check::screen(&report, &stdout_style()));
    let written = output.write_json(&report);
    Ok(written.map_or_else(|text| super::complained(&text), |()| true) && shown && report.well)
}

fn list(chosen: Option<&'static Exercise>) -> String {
    let all = EXERCISES.into_iter().filter(|one| chosen.is_none_or(|chosen| chosen.name == one.name));
    let exercises: Vec<_> = all
        .map(|exercise| ExerciseSummary {
            usage: format!("{} {}", exercise.name, exercise.usage),
            about: exercise.about.into(),
            requirements: exercise.requirements.iter().map(|one| (one.id.into(), one.what.into())).collect(),
        })
        .collect();
    weir_report::check::list(&exercises, &stdout_style())
}
