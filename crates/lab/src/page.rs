//! Makes the page of an experiment that was run, and the lines of lists of experiments.

use weir_model::lab::{
    JudgedPrediction, LabLine, LabOutcome, LabPage, LabRow, LabVerdict, PageOutcome, PreviousRun,
    ProgramVersion,
};

use crate::prediction::{self, Prediction};
use crate::{Experiment, ExperimentRun, library};

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
        picture: result.ran.first().map(|ran| ran.picture.clone()).unwrap_or_default(),
        tables: result.tables.clone(),
        commands: result.commands.clone(),
        options: options(experiment, &result.verdict),
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

/// Returns the options that show more of the experiment. Without its commands or its device neither of the programs can run.
fn options(experiment: &Experiment, verdict: &LabVerdict) -> Vec<&'static str> {
    let runs = !matches!(verdict, LabVerdict::Absent(_));
    let has = |version| library::has_program(experiment, version);
    let all = [
        (runs && (experiment.step.is_some() || has(ProgramVersion::Broken)), "--step (call by call)"),
        (runs && experiment.outcome.iter().any(prediction::is_asked), "--predict"),
        (has(ProgramVersion::Broken), "--source"),
        (has(ProgramVersion::Fixed), "--fixed"),
    ];
    all.into_iter().filter(|one| one.0).map(|one| one.1).collect()
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
        *all[index].value_mut(outcome.version) = Some(outcome.into());
    }
    all
}

fn judged(prediction: &Prediction, outcome: &LabOutcome) -> JudgedPrediction {
    JudgedPrediction { text: prediction.text.clone(), is_right: prediction.is_right(&outcome.seen) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::VersionRun;

    fn outcome(version: ProgramVersion, what: &str, expected: &str, seen: &str) -> LabOutcome {
        let [what, expected, seen] = [what, expected, seen].map(String::from);
        let as_expected = expected.is_empty() || crate::fits(&expected, &seen);
        LabOutcome { version, what, expected, stated: seen.clone(), seen, agrees: true, as_expected }
    }

    fn result() -> ExperimentRun {
        let run = |version, outcomes| VersionRun {
            version,
            outcomes,
            picture: vec!["| |".into()],
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
            [("4 lines", Some(false)), ("3 lines", Some(true))]
        );
        assert!(page.outcomes[1].broken.as_ref().is_some_and(|one| one.expected.is_none()));
        assert_eq!(page.options, ["--step (call by call)", "--predict", "--source", "--fixed"]);
        assert_eq!(page.picture, ["| |"], "that of the broken program");
    }

    #[test]
    fn a_page_names_only_options_that_work() {
        let of = |name: &str, verdict| options(&crate::find(name).expect("a built-in experiment"), &verdict);
        assert_eq!(of("copy-sizes", LabVerdict::Agrees), ["--predict"]);
        assert_eq!(
            of("many-writers-small", LabVerdict::Agrees),
            ["--step (call by call)", "--predict", "--source"]
        );
        assert_eq!(of("gpio-read", LabVerdict::Absent("no device".into())), ["--source", "--fixed"]);
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
