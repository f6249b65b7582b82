//! Maps experiments and their results to the pages that `weir-report` draws.

use std::path::Path;

use weir_lab::prediction::Prediction;
use weir_lab::{Experiment, ExperimentRun, history};
use weir_model::duration::format_seconds;
use weir_model::lab::{LabOutcome, LabVerdict, ProgramVersion};
use weir_report::Style;
use weir_report::lab::{self, LabLine, LabPage, ObservedValue, OutcomeLine};

/// Returns the list of experiments with their last results, which are read from `state_dir`.
pub fn list(experiments: &[Experiment], state_dir: Option<&Path>, style: &Style) -> String {
    let line = |experiment: &Experiment| LabLine {
        theme: theme(experiment),
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        previous: state_dir.and_then(|directory| history::last(directory, &experiment.name)),
        ..LabLine::default()
    };
    lab::list(&experiments.iter().map(line).collect::<Vec<_>>(), history::now_s(), style)
}

/// Returns the row of one experiment in the summary of several. `observed` is the outcomes in one line.
pub fn summary_line(experiment: &Experiment, result: &ExperimentRun, observed: &str) -> LabLine {
    LabLine {
        theme: theme(experiment),
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        seen: observed.into(),
        agrees: result.verdict.agrees(),
        reason: result.verdict.reason().unwrap_or_default().to_string(),
        previous: None,
    }
}

/// Returns the summary of several experiments.
pub fn summary(lines: &[LabLine], results: &[(&Experiment, ExperimentRun)], style: &Style) -> String {
    let tables: Vec<_> = results.iter().flat_map(|(_, result)| &result.tables).collect();
    lab::summary(lines, &tables, style)
}

/// Returns the page of one experiment.
pub fn page(
    experiment: &Experiment,
    result: &ExperimentRun,
    predictions: &[Prediction],
    style: &Style,
) -> String {
    let name = &experiment.name;
    let mut facts = result.commands.clone();
    facts.push(format!("took {}", format_seconds(result.elapsed.as_secs_f64())));
    let trouble = match &result.verdict {
        LabVerdict::Agrees => None,
        LabVerdict::Differs(reason) => Some(format!("not as the experiment states: {reason}")),
        LabVerdict::Absent(reason) => Some(format!("not run: {reason}")),
    };
    let page = LabPage {
        name: name.clone(),
        theme: theme(experiment),
        expect: experiment.expect.clone(),
        outcomes: outcome_rows(result, predictions),
        picture: picture(result),
        tables: result.tables.clone(),
        why: experiment.why.clone(),
        fix: experiment.fix.clone(),
        facts,
        trouble,
        see: format!("more: weir lab {name} with --step (call by call), --predict, --source or --fixed"),
    };
    lab::page(&page, style)
}

/// Returns the lines with which the check drew the run.
fn picture(result: &ExperimentRun) -> Vec<String> {
    let facts = result.ran.first().into_iter().flat_map(|run| &run.beside);
    facts.filter(|fact| fact.what == "picture").map(|fact| fact.value.clone()).collect()
}

/// Returns one row for each outcome, with the values of both programs and the prediction.
fn outcome_rows(result: &ExperimentRun, predictions: &[Prediction]) -> Vec<OutcomeLine> {
    let mut rows: Vec<OutcomeLine> = Vec::new();
    // The column of predictions leaves no room for outcomes that --predict does not ask about.
    let is_shown = |outcome: &&LabOutcome| predictions.is_empty() || !outcome.expected.is_empty();
    for run in &result.ran {
        for outcome in run.outcomes.iter().filter(is_shown) {
            let index = rows.iter().position(|row| row.what == outcome.what).unwrap_or_else(|| {
                let prediction = predictions.iter().find(|prediction| prediction.what == outcome.what);
                rows.push(OutcomeLine {
                    what: outcome.what.clone(),
                    expect: outcome.expected.clone(),
                    predicted: prediction.map(|prediction| marked(prediction, outcome)),
                    ..OutcomeLine::default()
                });
                rows.len() - 1
            });
            match run.version {
                ProgramVersion::Broken => rows[index].broken = Some(value(outcome)),
                ProgramVersion::Fixed => rows[index].fixed = Some(value(outcome)),
            }
        }
    }
    rows
}

fn marked(prediction: &Prediction, outcome: &LabOutcome) -> String {
    let mark = if prediction.is_right(&outcome.seen) { "✓" } else { "✗" };
    format!("{} {mark}", prediction.text)
}

fn value(outcome: &LabOutcome) -> ObservedValue {
    let expected = outcome.expected.is_empty() || weir_lab::fits(&outcome.expected, &outcome.seen);
    ObservedValue { seen: outcome.seen.clone(), agrees: outcome.agrees, expected }
}

fn theme(experiment: &Experiment) -> String {
    format!("{} · {}", experiment.theme, experiment.theme.title())
}
