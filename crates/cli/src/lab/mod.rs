//! `weir lab`: parses the command line, runs experiments, prints and writes the results.

mod check;
mod frames;
mod new;
mod step;
pub mod tool;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use weir_bench::run::Progress;
use weir_lab::prediction::{self, Prediction};
use weir_lab::{Error, Experiment, ExperimentRun, LabOptions, history, page};
use weir_model::lab::{LabDocument, LabVerdict, ProgramVersion};
use weir_report::lab as report_lab;
use weir_tui::style::stdout_style;

use crate::exit_status::{FAILED, INTERRUPTED, USAGE};
use crate::output::{OutputFiles, OutputOptions, PageFile};
use crate::progress::TerminalProgress;
use crate::{console, signals};

/// Run experiments about buffering on this machine
///
/// An experiment is a small program with a surprising effect, the fixed program, and one check for both. weir compiles
/// and runs both programs in a private directory, observes them with its own tracer, and compares what happens with
/// what the experiment states.
///
/// weir keeps only the last result of each experiment, for the list: a small file in $XDG_STATE_HOME/weir/lab, by
/// default ~/.local/state/weir/lab.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-lab/1); - is standard output")))]
#[command(mut_arg("json", |arg| arg.requires("name")))]
#[command(mut_arg("html", |arg| arg.help(HTML_HELP).requires("name").conflicts_with_all(["source", "fixed", "step", "predict"])))]
pub struct Args {
    #[command(subcommand)]
    verb: Option<SubVerb>,

    /// Experiment, folder of an experiment (./mine), or all; without NAME weir lists the experiments
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Use small sizes and few repetitions
    #[arg(long)]
    quick: bool,

    /// Print the program and how it is compiled
    #[arg(long, requires = "name", conflicts_with_all = ["fixed", "json"])]
    source: bool,

    /// Print the fixed program
    #[arg(long, requires = "name", conflicts_with = "json")]
    fixed: bool,

    /// Show the run of the program call by call, with its buffers; with --fixed the run of the fixed program
    #[arg(long, requires = "name", conflicts_with_all = ["source", "json"])]
    step: bool,

    /// Ask first what you think will happen, then run the experiment
    #[arg(long, requires = "name", conflicts_with_all = ["source", "fixed", "step", "quiet", "json"])]
    predict: bool,

    #[command(flatten)]
    output: OutputOptions<PageFile>,
}

#[derive(clap::Subcommand)]
enum SubVerb {
    Check(check::Args),
    New(new::Args),
}

const HTML_HELP: &str = "Write the result as one HTML page, with the runs call by call; - is standard output";

const EXAMPLES: &str = "\
Examples:
  weir lab                            list experiments and their last results
  weir lab doubled-at-fork            run one experiment
  weir lab doubled-at-fork --source   print its program
  weir lab doubled-at-fork --step     show it call by call, with the buffers
  weir lab doubled-at-fork --predict  say what you think, then compare
  weir lab all --quick                run all of them in about a minute
  weir lab all --json lab.json        run all in full, with the published tables
  weir lab all --quick --html lab.html  a page to look at and to send
  weir lab check copy.c               judge your own solution of an exercise
  weir lab new mine; weir lab ./mine  create and run your own experiment

Exit status:
  0    all outcomes are as stated, or weir says what this machine lacks
  1    an outcome is not as stated
  2    wrong usage, or the file of --json cannot be created
  130  stopped by Ctrl-C";

/// Runs `weir lab` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    match &args.verb {
        Some(SubVerb::Check(args)) => return check::run(args),
        Some(SubVerb::New(args)) => return new::run(args),
        None => {}
    }
    let files = match args.output.open_or_report() {
        Ok(files) => files,
        Err(status) => return status,
    };
    match list_show_or_run(args, files) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(Error::Stopped) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            ExitCode::from(if matches!(error, Error::Unknown { .. }) { USAGE } else { FAILED })
        }
    }
}

/// Returns false if an outcome is not as stated, or if an error was reported.
fn list_show_or_run(args: &Args, files: OutputFiles) -> Result<bool, Error> {
    let Some(name) = &args.name else { return Ok(print_or_report(&list()?)) };
    let version = if args.fixed { ProgramVersion::Fixed } else { ProgramVersion::Broken };
    if args.step {
        return step::run(&weir_lab::find(name)?, version, args.quick);
    }
    if args.source || args.fixed {
        return Ok(print_or_report(&weir_lab::source(&weir_lab::find(name)?, version)));
    }
    let chosen = if name == "all" { weir_lab::all()? } else { vec![weir_lab::find(name)?] };
    if args.predict && chosen.len() > 1 {
        return Ok(report("--predict asks about one experiment: name it; 'weir lab' lists them"));
    }
    let predictions = match args.predict {
        true => prediction::ask(&chosen[0], &mut io::stdin().lock(), &mut io::stdout().lock()),
        false => Ok(Vec::new()),
    };
    match predictions {
        Ok(predictions) => run_chosen(args, &chosen, files, &predictions),
        Err(error) => Ok(report(&format!("standard input: {error}"))),
    }
}

/// Returns the list of the built-in experiments with their last results.
fn list() -> Result<String, Error> {
    let state_dir = history::directory(|name| std::env::var_os(name));
    let previous = |name: &str| state_dir.as_ref().and_then(|directory| history::last(directory, name));
    let lines: Vec<_> =
        weir_lab::all()?.iter().map(|one| page::list_line(one, previous(&one.name))).collect();
    Ok(report_lab::list(&lines, history::now_s(), &stdout_style()))
}

fn run_chosen(
    args: &Args,
    chosen: &[Experiment],
    mut files: OutputFiles,
    predictions: &[Prediction],
) -> Result<bool, Error> {
    let results = run_with_progress(args, chosen, !files.shows_screen() || chosen.len() == 1)?;
    let mut document = LabDocument::new(args.quick);
    if files.wants_document() {
        document.environment = weir_bench::settings::environment(&std::env::temp_dir());
    }
    let mut lines = Vec::new();
    for (experiment, result) in &results {
        let row = weir_lab::row(experiment, result);
        lines.push(page::summary_line(experiment, &row));
        document.experiments.push(row);
    }
    let as_stated = !results.iter().any(|(_, result)| matches!(result.verdict, LabVerdict::Differs(_)));
    let printed = !files.shows_screen()
        || print_or_report(&match results.as_slice() {
            [(experiment, result)] => {
                report_lab::page(&page::page(experiment, result, predictions), &stdout_style())
            }
            results => {
                let tables: Vec<_> = results.iter().flat_map(|(_, result)| &result.tables).collect();
                report_lab::summary(&lines, &tables, &stdout_style())
            }
        });
    if files.wants_page() {
        frames::add(args, chosen, &mut document)?;
    }
    let written = files.write_document(&document).map_or_else(|error| report(&error), |()| true);
    Ok(written && printed && as_stated)
}

/// Runs the experiments and returns their results in the order of `chosen`.
fn run_with_progress<'a>(
    args: &Args,
    chosen: &'a [Experiment],
    hide_progress: bool,
) -> Result<Vec<(&'a Experiment, ExperimentRun)>, Error> {
    let stop = stop_flag();
    let options = LabOptions { weir: executable(), quick: args.quick, stop: &stop };
    let mut progress = TerminalProgress::new(hide_progress);
    let mut results: Vec<Option<ExperimentRun>> = chosen.iter().map(|_| None).collect();
    let (start, count, mut ended) = (Instant::now(), chosen.len() as f64, 0.0);
    weir_lab::run_all(chosen, &options, &mut |index, result| {
        save_result(&chosen[index], &result, args.quick);
        results[index] = Some(result);
        ended += 1.0;
        let time_left = start.elapsed().mul_f64(count / ended - 1.0);
        progress.advance(ended / count, time_left, &chosen[index].name);
    })?;
    progress.finish();
    Ok(chosen.iter().zip(results.into_iter().flatten()).collect())
}

/// Saves the result of a built-in experiment for the list. A write error is ignored: the list then lacks this result.
fn save_result(experiment: &Experiment, result: &ExperimentRun, quick: bool) {
    let state_dir = history::directory(|name| std::env::var_os(name));
    if let Some(state_dir) = state_dir.filter(|_| experiment.folder.is_none()) {
        let _ = history::store(&state_dir, &experiment.name, &history::run_now(&result.verdict, quick));
    }
}

/// Prints to standard output. Returns false if that failed and the error was reported.
fn print_or_report(text: &str) -> bool {
    console::print_screen(text).map_or_else(|error| report(&error), |()| true)
}

/// Reports an error on standard error. Returns false.
fn report(error: &str) -> bool {
    eprintln_lossy!("weir: {error}");
    false
}

/// Returns the path of this program, which the experiments run.
fn executable() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "weir".into())
}

/// Returns a flag that the stop signals set. If no handler can be installed, the flag stays unset and a signal ends weir.
fn stop_flag() -> Arc<AtomicBool> {
    signals::stop_flag().unwrap_or_default()
}
