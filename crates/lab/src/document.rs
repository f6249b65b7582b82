//! The result as JSON: schema weir-lab/1.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Experiment;
use crate::judge::Verdict;
use crate::published::Table;
use crate::run::Result;

/// What --json writes.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    quick: bool,
    /// One for each experiment.
    pub experiments: Vec<Row>,
}

/// One experiment.
#[derive(Debug, Serialize)]
pub struct Row {
    name: String,
    theme: String,
    about: String,
    expected: String,
    seen: String,
    agrees: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    elapsed_s: f64,
    outcomes: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tables: Vec<Table>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    trace: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    bench: Map<String, Value>,
}

impl Document {
    /// Of no experiment yet.
    pub fn new(quick: bool) -> Document {
        Document { schema: "weir-lab/1", quick, experiments: Vec::new() }
    }
}

impl Row {
    /// Of an experiment that was run.
    pub fn of(experiment: &Experiment, result: &Result) -> Row {
        let mut row = Row {
            name: experiment.name.clone(),
            theme: experiment.theme.to_string(),
            about: experiment.about.clone(),
            expected: experiment.expect.clone(),
            seen: seen(result),
            agrees: None,
            reason: None,
            elapsed_s: result.elapsed.as_secs_f64(),
            outcomes: outcomes(result),
            tables: result.tables.clone(),
            trace: results(result, "weir-trace/1"),
            bench: results(result, "weir-bench/1"),
        };
        match &result.verdict {
            Verdict::Agrees => row.agrees = Some(true),
            Verdict::Differs(reason) => (row.agrees, row.reason) = (Some(false), Some(reason.clone())),
            Verdict::Absent(reason) => row.reason = Some(reason.clone()),
        }
        row
    }

    /// What was seen, in a line.
    pub fn seen(&self) -> &str {
        &self.seen
    }
}

/// What the broken program did, or the only one.
fn seen(result: &Result) -> String {
    let first = result.ran.first();
    let said = first.into_iter().flat_map(|ran| &ran.outcomes);
    said.map(|one| format!("{}: {}", one.what, one.seen)).collect::<Vec<_>>().join("; ")
}

fn outcomes(result: &Result) -> Vec<Value> {
    let of = |ran: &crate::run::Ran| -> Vec<Value> {
        let one = |what: &crate::Agreement| {
            json!({"version": ran.version.name(), "what": what.what, "expected": what.expect,
                   "stated": what.stated, "seen": what.seen, "agrees": what.agrees})
        };
        ran.outcomes.iter().map(one).collect()
    };
    result.ran.iter().flat_map(of).collect()
}

fn results(result: &Result, schema: &str) -> Map<String, Value> {
    let of_version = |ran: &crate::run::Ran| -> Vec<(String, Value)> {
        let wanted = ran.results.iter().filter(|one| one.1["schema"] == schema);
        wanted.map(|one| (format!("{}/{}", ran.version.name(), one.0), one.1.clone())).collect()
    };
    result.ran.iter().flat_map(of_version).collect()
}
