//! `weir lab`: the command line, and what is done with it.

mod check;
mod new;
mod predict;
mod show;
mod step;
pub mod tool;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use weir_bench::run::Progress;
use weir_lab::history;
use weir_lab::{Error, Experiment, Options, Result};
use weir_model::lab::{LabDocument, LabVerdict};

use predict::Answer;

use crate::output::{OutputFiles, OutputOptions};
use crate::progress::Bar;
use crate::{FAILED, USAGE, console, signals};
use weir_tui::style::stdout_style;

/// Run the experiments about buffering, for real, here
///
/// Each is a small program that shows what most people do not expect, the same program mended, and one check for
/// both; weir compiles and runs them in a private directory, watches them with its own tracer, and says whether what
/// happened is what the experiment states. Nothing is left behind but how each ended, for the list: a small file in
/// $XDG_STATE_HOME/weir/lab, by default ~/.local/state/weir/lab.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-lab/1); - is standard output")))]
#[command(mut_arg("json", |arg| arg.requires("name")))]
pub struct Args {
    #[command(subcommand)]
    verb: Option<SubVerb>,

    /// The experiment, a folder with one (./mine), or all; without a name the list is shown
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Small sizes and few repetitions
    #[arg(long)]
    quick: bool,

    /// Show the program, and how it is compiled
    #[arg(long, requires = "name", conflicts_with_all = ["fixed", "json"])]
    source: bool,

    /// Show the fixed program
    #[arg(long, requires = "name", conflicts_with = "json")]
    fixed: bool,

    /// Go through the run of the program one call at a time, with its buffers drawn; with --fixed, of the fixed one
    #[arg(long, requires = "name", conflicts_with_all = ["source", "json"])]
    step: bool,

    /// Say first what you think will happen, then see
    #[arg(long, requires = "name", conflicts_with_all = ["source", "fixed", "step", "quiet", "json"])]
    predict: bool,

    #[command(flatten)]
    output: OutputOptions,
}

#[derive(clap::Subcommand)]
enum SubVerb {
    Check(check::Args),
    New(new::Args),
}

const EXAMPLES: &str = "\
Examples:
  weir lab                            the list, and what was already run here
  weir lab doubled-at-fork            one experiment
  weir lab doubled-at-fork --source   its program
  weir lab doubled-at-fork --step     call by call, with the buffers drawn
  weir lab doubled-at-fork --predict  what do you think? Then see
  weir lab all --quick                all of them, in about a minute
  weir lab all --json lab.json        in full, with every published table beside ours
  weir lab check copy.c               your own solution of an exercise, judged
  weir lab new mine; weir lab ./mine  an experiment of your own

Exit status: 0 all agree with what they state, or say what this machine lacks; 1 one does not agree;
2 wrong usage; 130 stopped by Ctrl-C.";

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match &args.verb {
        Some(SubVerb::Check(args)) => return check::run(args),
        Some(SubVerb::New(args)) => return new::run(args),
        None => {}
    }
    match done(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(Error::Stopped) => ExitCode::from(130),
        Err(error) => {
            complain!("weir: {error}");
            ExitCode::from(if matches!(error, Error::Unknown { .. }) { USAGE } else { FAILED })
        }
    }
}

fn done(args: &Args) -> std::result::Result<bool, Error> {
    let Some(name) = &args.name else {
        let kept = history::directory(|name| std::env::var_os(name));
        return Ok(print(&show::list(&weir_lab::all()?, kept.as_deref(), &stdout_style())));
    };
    if args.step {
        return step::run(&weir_lab::find(name)?, args.fixed, args.quick);
    }
    if args.source || args.fixed {
        return Ok(print(&show::source(&weir_lab::find(name)?, args.fixed)));
    }
    let chosen = if name == "all" { weir_lab::all()? } else { vec![weir_lab::find(name)?] };
    let output = match args.output.open() {
        Ok(output) => output,
        Err(text) => return Ok(complained(&text)),
    };
    if args.predict && chosen.len() > 1 {
        return Ok(complained("--predict asks about one experiment: name it; 'weir lab' lists them"));
    }
    let answers = if args.predict { predict::ask(&chosen[0]) } else { Ok(Vec::new()) };
    match answers {
        Ok(answers) => run_all(args, &chosen, output, &answers),
        Err(error) => Ok(complained(&format!("standard input: {error}"))),
    }
}

fn run_all(
    args: &Args,
    chosen: &[Experiment],
    mut output: OutputFiles,
    answers: &[Answer],
) -> std::result::Result<bool, Error> {
    let stop = stop_flag();
    let options = Options { weir: executable(), quick: args.quick, stop: &stop };
    let to_screen = output.shows_screen();
    let mut bar = Bar::new(!to_screen || chosen.len() == 1);
    let mut results: Vec<Option<Result>> = chosen.iter().map(|_| None).collect();
    let (begun, mut ended) = (Instant::now(), 0.0);
    weir_lab::run_all(chosen, &options, &mut |at, result| {
        keep(&chosen[at], &result, args.quick);
        results[at] = Some(result);
        ended += 1.0;
        let left = begun.elapsed().mul_f64(chosen.len() as f64 / ended - 1.0);
        bar.advance(ended / chosen.len() as f64, left, &chosen[at].name);
    })?;
    let results: Vec<_> = chosen.iter().zip(results.into_iter().flatten()).collect();
    let mut document = LabDocument::new(args.quick);
    let mut lines = Vec::new();
    for (experiment, result) in &results {
        let row = weir_lab::row(experiment, result);
        lines.push(show::line(experiment, result, &row.seen));
        document.experiments.push(row);
    }
    let well = !results.iter().any(|one| matches!(one.1.verdict, LabVerdict::Differs(_)));
    bar.finish();
    match results.as_slice() {
        _ if !to_screen => true,
        [(experiment, result)] => print(&show::page(experiment, result, answers, &stdout_style())),
        _ => print(&show::summary(&lines, &results, &stdout_style())),
    };
    let written = output.write_json(&document);
    Ok(written.map_or_else(|text| complained(&text), |()| true) && well)
}

/// For the list. Where it cannot be written the list says less, and that is all.
fn keep(experiment: &Experiment, result: &Result, quick: bool) {
    let directory = history::directory(|name| std::env::var_os(name));
    if let Some(directory) = directory.filter(|_| experiment.folder.is_none()) {
        let _ = history::keep(&directory, &experiment.name, &history::run_now(&result.verdict, quick));
    }
}

fn print(text: &str) -> bool {
    console::print_screen(text).map_or_else(|error| complained(&error), |()| true)
}

fn complained(text: &str) -> bool {
    complain!("weir: {text}");
    false
}

/// Returns the path of this program, which the experiments run.
fn executable() -> std::path::PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "weir".into())
}

/// Without it a signal ends weir at once, as it would anyone.
fn stop_flag() -> Arc<AtomicBool> {
    signals::stop_flag().unwrap_or_default()
}
