//! From an experiment and its result to what is shown.

use std::path::Path;

use weir_lab::{Experiment, Result, history};
use weir_model::lab::{LabOutcome, LabVerdict, ProgramVersion};

use super::predict::Answer;
use weir_model::duration::format_seconds;
use weir_report::Style;
use weir_report::lab::{self, Line, Outcome, Page, Value};

/// The list.
pub fn list(experiments: &[Experiment], kept: Option<&Path>, style: &Style) -> String {
    let line = |one: &Experiment| Line {
        theme: theme(one),
        name: one.name.clone(),
        about: one.about.clone(),
        previous: kept.and_then(|directory| history::last(directory, &one.name)),
        ..Line::default()
    };
    lab::list(&experiments.iter().map(line).collect::<Vec<_>>(), history::now_s(), style)
}

/// A line of the table at the end.
pub fn line(experiment: &Experiment, result: &Result, seen: &str) -> Line {
    let agrees = result.verdict.agrees();
    let reason = result.verdict.reason().unwrap_or_default().to_string();
    let about = experiment.about.clone();
    let (theme, name) = (theme(experiment), experiment.name.clone());
    Line { theme, name, about, seen: seen.into(), agrees, reason, previous: None }
}

/// The table at the end.
pub fn summary(lines: &[Line], results: &[(&Experiment, Result)], style: &Style) -> String {
    let tables: Vec<_> = results.iter().flat_map(|one| &one.1.tables).collect();
    lab::summary(lines, &tables, style)
}

/// One experiment.
pub fn page(experiment: &Experiment, result: &Result, answers: &[Answer], style: &Style) -> String {
    let name = &experiment.name;
    let mut facts = result.commands.clone();
    facts.push(format!("took {}", format_seconds(result.elapsed.as_secs_f64())));
    let trouble = match &result.verdict {
        LabVerdict::Agrees => None,
        LabVerdict::Differs(reason) => Some(format!("this is not what the experiment states: {reason}")),
        LabVerdict::Absent(reason) => Some(format!("not run: {reason}")),
    };
    let page = Page {
        name: name.clone(),
        theme: theme(experiment),
        expect: experiment.expect.clone(),
        outcomes: outcomes(result, answers),
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

/// The lines that the check drew of the run.
fn picture(result: &Result) -> Vec<String> {
    let first = result.ran.first().into_iter().flat_map(|ran| &ran.beside);
    first.filter(|one| one.what == "picture").map(|one| one.value.clone()).collect()
}

fn outcomes(result: &Result, answers: &[Answer]) -> Vec<Outcome> {
    let mut rows: Vec<Outcome> = Vec::new();
    for ran in &result.ran {
        // Beside answers there is no room for what nobody was asked.
        let shown = |one: &&LabOutcome| answers.is_empty() || !one.expected.is_empty();
        for one in ran.outcomes.iter().filter(shown) {
            let at = rows.iter().position(|row| row.what == one.what).unwrap_or_else(|| {
                rows.push(Outcome {
                    what: one.what.clone(),
                    expect: one.expected.clone(),
                    said: answers.iter().find(|answer| answer.what == one.what).map(said(one)),
                    ..Outcome::default()
                });
                rows.len() - 1
            });
            match ran.version {
                ProgramVersion::Broken => rows[at].broken = Some(value(one)),
                ProgramVersion::Fixed => rows[at].fixed = Some(value(one)),
            }
        }
    }
    rows
}

/// What the reader said, and whether that is what happened.
fn said(one: &LabOutcome) -> impl Fn(&Answer) -> String {
    move |answer| format!("{} {}", answer.text, if answer.is_right(&one.seen) { "✓" } else { "✗" })
}

fn value(one: &LabOutcome) -> Value {
    let expected = one.expected.is_empty() || weir_lab::fits(&one.expected, &one.seen);
    Value { seen: one.seen.clone(), agrees: one.agrees, expected }
}

/// The text of a program.
pub fn source(experiment: &Experiment, fixed: bool) -> String {
    let version = if fixed { ProgramVersion::Fixed } else { ProgramVersion::Broken };
    weir_lab::source(experiment, version)
}

fn theme(experiment: &Experiment) -> String {
    format!("{} · {}", experiment.theme, experiment.theme.title())
}
