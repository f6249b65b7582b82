//! Makes the page of an experiment that was run, and the lines of lists of experiments.

use weir_model::lab::{
    JudgedPrediction, LabLine, LabOutcome, LabPage, LabRow, ObservedValue, PageOutcome, PreviousRun,
};

use crate::prediction::Prediction;
use crate::{Experiment, ExperimentRun};

/// Returns the page of an experiment. With predictions it has only the outcomes with an expectation: these are the ones
/// that [`crate::prediction::ask`] asks about.
pub fn page(experiment: &Experiment, result: &ExperimentRun, predictions: &[Prediction]) -> LabPage {
    LabPage {
        name: experiment.name.clone(),
        theme: experiment.theme.heading(),
        expect: experiment.expect.clone(),
        why: experiment.why.clone(),
        fix: experiment.fix.clone(),
        verdict: result.verdict.clone(),
        outcomes: outcomes(result, predictions),
        picture: picture(result),
        tables: result.tables.clone(),
        commands: result.commands.clone(),
        elapsed: result.elapsed,
    }
}

/// Returns the line of an experiment in the list of all.
pub fn list_line(experiment: &Experiment, previous: Option<PreviousRun>) -> LabLine {
    LabLine {
        theme: experiment.theme.heading(),
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        previous,
        ..LabLine::default()
    }
}

/// Returns the line of an experiment in the summary of several; `row` is its row in the document.
pub fn summary_line(experiment: &Experiment, row: &LabRow) -> LabLine {
    LabLine {
        theme: experiment.theme.heading(),
        name: row.name.clone(),
        about: row.about.clone(),
        seen: row.seen.clone(),
        agrees: row.agrees,
        previous: None,
        reason: row.reason.clone().unwrap_or_default(),
    }
}

/// Returns the lines with which the check drew the run.
fn picture(result: &ExperimentRun) -> Vec<String> {
    let values = result.ran.first().into_iter().flat_map(|run| &run.beside);
    values.filter(|value| value.what == "picture").map(|value| value.value.clone()).collect()
}

/// Returns one entry for each outcome, with the values of both programs and the prediction.
fn outcomes(result: &ExperimentRun, predictions: &[Prediction]) -> Vec<PageOutcome> {
    let mut all: Vec<PageOutcome> = Vec::new();
    let is_shown = |outcome: &&LabOutcome| predictions.is_empty() || !outcome.expected.is_empty();
    for outcome in result.ran.iter().flat_map(|run| &run.outcomes).filter(is_shown) {
        let index = all.iter().position(|one| one.what == outcome.what).unwrap_or_else(|| {
            let prediction = predictions.iter().find(|prediction| prediction.what == outcome.what);
            all.push(PageOutcome {
                what: outcome.what.clone(),
                expect: outcome.expected.clone(),
                prediction: prediction.map(|prediction| judged(prediction, outcome)),
                ..PageOutcome::default()
            });
            all.len() - 1
        });
        *all[index].value_mut(outcome.version) = Some(value(outcome));
    }
    all
}

fn judged(prediction: &Prediction, outcome: &LabOutcome) -> JudgedPrediction {
    JudgedPrediction { text: prediction.text.clone(), is_right: prediction.is_right(&outcome.seen) }
}

fn value(outcome: &LabOutcome) -> ObservedValue {
    ObservedValue { seen: outcome.seen.clone(), agrees: outcome.agrees, expected: outcome.as_expected }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_model::lab::{LabVerdict, ProgramVersion};

    use super::*;
    use crate::{CheckedValue, VersionRun};

    fn outcome(version: ProgramVersion, what: &str, expected: &str, seen: &str) -> LabOutcome {
        let [what, expected, seen] = [what, expected, seen].map(String::from);
        let as_expected = expected.is_empty() || crate::fits(&expected, &seen);
        LabOutcome { version, what, expected, stated: seen.clone(), seen, agrees: true, as_expected }
    }

    fn result() -> ExperimentRun {
        let run = |version, outcomes| VersionRun {
            version,
            outcomes,
            beside: vec![CheckedValue { what: "picture".into(), value: "| |".into() }],
            failure: None,
            results: Vec::new(),
            ours: Vec::new(),
        };
        let (broken, fixed) = (ProgramVersion::Broken, ProgramVersion::Fixed);
        let of_broken = vec![
            outcome(broken, "in a file", "3 lines", "4 lines"),
            outcome(broken, "writes", "", "2 writes"),
        ];
        ExperimentRun {
            verdict: LabVerdict::Agrees,
            ran: vec![
                run(broken, of_broken),
                run(fixed, vec![outcome(fixed, "in a file", "3 lines", "3 lines")]),
            ],
            tables: Vec::new(),
            commands: vec!["cc".into()],
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn the_values_of_both_programs_are_in_one_outcome() {
        let experiment = crate::find("doubled-at-fork").expect("a built-in experiment");
        let page = page(&experiment, &result(), &[]);
        assert_eq!(page.outcomes.len(), 2);
        let first = &page.outcomes[0];
        let values = [&first.broken, &first.fixed].map(|one| one.as_ref().expect("a value"));
        assert_eq!(
            values.map(|one| (one.seen.as_str(), one.expected)),
            [("4 lines", false), ("3 lines", true)]
        );
        assert!(page.outcomes[1].broken.as_ref().is_some_and(|one| one.expected), "no expectation");
        assert_eq!(page.picture, ["| |"], "that of the broken program");
    }

    #[test]
    fn a_page_with_predictions_has_only_outcomes_with_an_expectation() {
        let experiment = crate::find("doubled-at-fork").expect("a built-in experiment");
        let predictions = [Prediction { what: "in a file".into(), text: "3".into() }];
        let page = page(&experiment, &result(), &predictions);
        let [outcome] = page.outcomes.as_slice() else { panic!("{:?}", page.outcomes) };
        assert_eq!(outcome.prediction, Some(JudgedPrediction { text: "3".into(), is_right: false }));
    }
}
