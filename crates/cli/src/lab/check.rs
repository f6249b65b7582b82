//! `weir lab check`: parses the command line, judges a solution of an exercise, prints the verdicts.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_lab::Error;
use weir_lab::check::{self, EXERCISES, Exercise, ExerciseJudge};
use weir_model::lab::check::ExerciseSummary;
use weir_tui::style::stdout_style;

use super::{executable, print_or_report, report, stop_flag};
use crate::exit_status::{FAILED, INTERRUPTED, USAGE};
use crate::output::{OutputFiles, OutputOptions};
use crate::values::completed_words;

/// Judge your own solution of an exercise
///
/// weir compiles a C source with cc -O1 -Wall; it runs a program or script as it is. It runs the solution many times in
/// private directories: with unusual inputs, under its own tracer, on a full disk, and with a kill. For each
/// requirement of the exercise weir then prints whether it is met, what happened, and where to read more.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-lab-check/1); - is standard output")))]
pub struct Args {
    /// C source (.c) or executable file
    #[arg(required_unless_present = "list")]
    program: Option<PathBuf>,

    /// Name of the exercise, if the file has another name
    #[arg(long = "as", value_name = "EXERCISE", value_parser = completed_words(EXERCISES.map(|exercise| exercise.name)))]
    exercise: Option<String>,

    /// List what each exercise requires; with --as only that exercise
    #[arg(long, conflicts_with_all = ["program", "json"])]
    list: bool,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir lab check --list                what each exercise requires
  weir lab check --list --as tail      what tail requires
  weir lab check copy.c                compile and judge it
  weir lab check mine.py --as tail     a script with another name
  weir lab check ./dots --json -       the verdicts for other programs

Exit status:
  0    each requirement is met, or cannot be checked here
  1    a requirement is not met
  2    wrong usage, or the file of --json cannot be created
  130  stopped by Ctrl-C";

/// Runs `weir lab check` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let exercise = match exercise(args) {
        Ok(exercise) => exercise,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let files = match args.output.open_or_report() {
        Ok(files) => files,
        Err(status) => return status,
    };
    match list_or_judge(args, exercise, files) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(Error::Stopped) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            // Error::File means that the given file is missing or cannot be executed.
            ExitCode::from(if matches!(error, Error::File { .. }) { USAGE } else { FAILED })
        }
    }
}

/// Returns the exercise that `--as` names, else the one that the file is named for; `None` without `--as` and file.
/// Fails if no exercise has that name.
fn exercise(args: &Args) -> Result<Option<&'static Exercise>, String> {
    let names = || EXERCISES.map(|exercise| exercise.name).join(", ");
    match (&args.exercise, &args.program) {
        (Some(name), _) => check::exercise(name)
            .map(Some)
            .ok_or_else(|| format!("no exercise {name}; use one of: {}", names())),
        (None, Some(program)) => check::exercise_of(program).map(Some).ok_or_else(|| {
            let program = program.display();
            format!("{program}: cannot tell the exercise from the name; add --as with one of: {}", names())
        }),
        (None, None) => Ok(None),
    }
}

/// Prints the list for `--list`, else judges the solution and writes the results. Returns true if the list is printed
/// or each requirement is met; false if one is not met, or if an output error was reported. Fails if the judge fails.
fn list_or_judge(
    args: &Args,
    exercise: Option<&'static Exercise>,
    mut files: OutputFiles,
) -> Result<bool, Error> {
    let (Some(program), Some(exercise)) = (&args.program, exercise) else {
        return Ok(print_or_report(&list(exercise)));
    };
    let stop = stop_flag();
    let judgement = ExerciseJudge { weir: executable(), stop: &stop }.judge(program, exercise)?;
    let printed =
        !files.shows_screen() || print_or_report(&weir_report::check::screen(&judgement, &stdout_style()));
    let written = files.write_document(&judgement).map_or_else(|error| report(&error), |()| true);
    Ok(written && printed && judgement.well)
}

/// Returns the text of `--list`: the requirements of `chosen`, or of all exercises without one.
fn list(chosen: Option<&'static Exercise>) -> String {
    let is_chosen = |exercise: &&Exercise| chosen.is_none_or(|chosen| chosen.name == exercise.name);
    let summary = |exercise: &Exercise| ExerciseSummary {
        usage: format!("{} {}", exercise.name, exercise.usage),
        about: exercise.about.into(),
        requirements: exercise.requirements.iter().map(|one| (one.id.into(), one.what.into())).collect(),
    };
    let exercises: Vec<_> = EXERCISES.into_iter().filter(is_chosen).map(summary).collect();
    weir_report::check::list(&exercises, &stdout_style())
}
