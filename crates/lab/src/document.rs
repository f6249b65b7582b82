//! Rows of the result as JSON (schema weir-lab/1).

use serde_json::{Map, Value};
use weir_model::lab::LabRow;

use crate::Experiment;
use crate::run::{ExperimentRun, VersionRun};

/// Makes the document's row for an experiment that was run.
pub fn row(experiment: &Experiment, result: &ExperimentRun) -> LabRow {
    LabRow {
        name: experiment.name.clone(),
        theme: experiment.theme.to_string(),
        about: experiment.about.clone(),
        expected: experiment.expect.clone(),
        seen: seen(result),
        why: experiment.why.clone(),
        fix: experiment.fix.clone(),
        agrees: result.verdict.agrees(),
        reason: result.verdict.reason().map(String::from),
        elapsed_s: result.elapsed.as_secs_f64(),
        outcomes: result.ran.iter().flat_map(|ran| ran.outcomes.clone()).collect(),
        tables: result.tables.clone(),
        trace: results(result, "weir-trace/1"),
        bench: results(result, "weir-bench/1"),
        steps: Vec::new(),
    }
}

/// Returns the outcomes of the broken program, or of the only one, in one line.
fn seen(result: &ExperimentRun) -> String {
    let outcomes = result.ran.first().into_iter().flat_map(|ran| &ran.outcomes);
    outcomes.map(|one| format!("{}: {}", one.what, one.seen)).collect::<Vec<_>>().join("; ")
}

/// Returns the documents of one schema that the checks made, by `VERSION/FILE`.
fn results(result: &ExperimentRun, schema: &str) -> Map<String, Value> {
    let of_version = |ran: &VersionRun| -> Vec<(String, Value)> {
        let wanted = ran.results.iter().filter(|one| one.1["schema"] == schema);
        wanted.map(|one| (format!("{}/{}", ran.version.name(), one.0), one.1.clone())).collect()
    };
    result.ran.iter().flat_map(of_version).collect()
}
