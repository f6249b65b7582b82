//! A run as CSV: one line for each row, units in the column names, empty cells for missing figures.

use weir_model::Summary;
use weir_model::bench::{BenchDocument, BenchRow};

/// A column name and the function that returns a row's cell.
type Field = (&'static str, fn(&BenchRow) -> String);

/// Columns that identify a row.
const WORDS: &[Field] = &[
    ("workload", |row| row.group.workload.clone()),
    ("method", |row| row.method.clone()),
    ("record_bytes", |row| row.record_bytes.to_string()),
    ("buffer_bytes", |row| text(row.buffer_bytes)),
    ("mode", |row| text(row.mode.as_ref())),
    ("vector_records", |row| text(row.vector_records)),
    ("queue_depth", |row| text(row.queue_depth)),
    ("bytes", |row| row.group.bytes.to_string()),
    ("measured_bytes", |row| row.measured_bytes.to_string()),
    ("extrapolated", |row| row.extrapolated.to_string()),
    ("verified", |row| row.verified.to_string()),
    ("sync", |row| row.group.sync.clone()),
    ("sync_every_records", |row| text(row.group.sync_every_records)),
    ("sync_every_bytes", |row| text(row.group.sync_every_bytes)),
    ("cache", |row| row.group.cache.clone()),
    ("advice", |row| text(row.group.advice.as_ref())),
    ("fs", |row| row.group.fs.clone()),
    ("dir", |row| row.group.dir.clone()),
];

/// A column name and the function that returns a row's summary.
type Figure = (&'static str, fn(&BenchRow) -> Option<Summary>);

/// Summaries: each becomes three columns, the median and the ends of its 95 % interval.
const SUMMARIES: &[Figure] = &[
    ("elapsed_s", |row| row.elapsed_s),
    ("cpu_s", |row| row.cpu_s),
    ("user_s", |row| row.user_s),
    ("system_s", |row| row.system_s),
    ("transfer_s", |row| row.transfer_s),
    ("sync_s", |row| row.sync_s),
    ("close_s", |row| row.close_s),
    ("switches_voluntary", |row| row.context_switches.voluntary),
    ("switches_involuntary", |row| row.context_switches.involuntary),
    ("page_faults", |row| row.page_faults),
];

/// Columns with single figures and remarks.
const REST: &[Field] = &[
    ("samples", |row| text(row.elapsed_s.map(|summary| summary.n))),
    ("elapsed_min_s", |row| text(row.elapsed_s.map(|summary| summary.min))),
    ("elapsed_max_s", |row| text(row.elapsed_s.map(|summary| summary.max))),
    ("outliers", |row| row.outliers.to_string()),
    (
        "calls",
        |row| if row.calls.is_empty() { String::new() } else { row.calls.values().sum::<u64>().to_string() },
    ),
    ("calls_by_name", by_name),
    ("calls_per_mib", |row| text(row.calls_per_mib)),
    ("dirty_bytes", |row| text(row.dirty_bytes)),
    ("cached_before", |row| text(row.cached_before)),
    ("vs_best", |row| text(row.vs_best.map(|ratio| ratio.value))),
    ("vs_best_ci95_low", |row| text(row.vs_best.map(|ratio| ratio.ci95[0]))),
    ("vs_best_ci95_high", |row| text(row.vs_best.map(|ratio| ratio.ci95[1]))),
    ("ties_with_best", |row| row.ties_with_best.to_string()),
    ("predicted_s", |row| text(row.predicted_s)),
    ("cannot", |row| text(row.cannot.as_ref())),
    ("remark", |row| text(row.remark.as_ref())),
];

fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn by_name(row: &BenchRow) -> String {
    row.calls.iter().map(|(name, calls)| format!("{name}={calls}")).collect::<Vec<_>>().join(" ")
}

fn record(row: &BenchRow) -> Vec<String> {
    let mut record: Vec<String> = WORDS.iter().map(|(_, field)| field(row)).collect();
    for (_, summary) in SUMMARIES {
        let summary = summary(row);
        record.push(text(summary.map(|summary| summary.median)));
        record.extend([0, 1].map(|end| text(summary.map(|summary| summary.ci95[end]))));
    }
    record.extend(REST.iter().map(|(_, field)| field(row)));
    record
}

/// Returns the three column names of a summary with the unit at the end: `elapsed_s`, `elapsed_ci95_low_s`,
/// `elapsed_ci95_high_s`.
fn heads(name: &str) -> [String; 3] {
    let (bare, unit) = name.strip_suffix("_s").map_or((name, ""), |bare| (bare, "_s"));
    [name.into(), format!("{bare}_ci95_low{unit}"), format!("{bare}_ci95_high{unit}")]
}

/// Returns one line for each row of `document`, under a header that is the same for every run.
pub fn csv(document: &BenchDocument) -> String {
    let mut head: Vec<String> = WORDS.iter().map(|(name, _)| name.to_string()).collect();
    head.extend(SUMMARIES.iter().flat_map(|(name, _)| heads(name)));
    head.extend(REST.iter().map(|(name, _)| name.to_string()));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    crate::csv::text(&head, document.rows.iter().map(record))
}
