//! Comparison of two runs of `weir bench` (schema weir-bench-compare/1).

use std::collections::BTreeMap;

use crate::number::counted;
use crate::stats::{MIN_SAMPLES, Ratio};
use serde::{Deserialize, Serialize};

use super::{BenchDocument, BenchRow, GroupKey, Machine, UNKNOWN_NOISE};

/// Value of [`BenchComparison::schema`].
pub const SCHEMA: &str = "weir-bench-compare/1";

/// The rows of two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchComparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the first file.
    pub a: String,
    /// Name of the second file.
    pub b: String,
    /// The larger A/A noise of the two runs. A difference within this share is a tie.
    pub noise: f64,
    /// Rows of both runs.
    pub rows: Vec<ComparedRow>,
    /// Labels of rows that only the first run has.
    pub only_a: Vec<String>,
    /// Labels of rows that only the second run has.
    pub only_b: Vec<String>,
    /// Reasons to doubt the comparison, in sentences.
    pub warnings: Vec<String>,
    /// The circumstances of both runs; empty in documents of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ComparedRun>,
}

/// The circumstances of one of the runs; the fields are those of [`BenchDocument`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ComparedRun {
    pub command: Vec<String>,
    pub started: String,
    pub seed: Option<u64>,
    pub machine: Machine,
    pub settings: BTreeMap<String, String>,
    /// Directories with file system and mount options.
    pub places: Vec<String>,
}

impl ComparedRun {
    /// Returns the circumstances of a run.
    pub(super) fn of(run: &BenchDocument) -> Self {
        Self {
            command: run.command.clone(),
            started: run.started.clone(),
            seed: run.seed,
            machine: run.machine.clone(),
            settings: run.settings.clone(),
            places: run.places(),
        }
    }
}

/// One row of both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    /// Properties shared with the row's group.
    #[serde(flatten)]
    pub group: GroupKey,
    /// Name of the method.
    pub method: String,
    /// Bytes that each call of the program moves.
    pub record_bytes: u64,
    /// Size of the user-space buffer; `None` for no buffer or the default.
    pub buffer_bytes: Option<u64>,
    /// setvbuf(3) mode; `None` for the default.
    pub mode: Option<String>,
    /// Median elapsed seconds of the first run.
    pub a_s: f64,
    /// Median elapsed seconds of the second run.
    pub b_s: f64,
    /// Second run divided by the first: below 1 the second is faster.
    pub ratio: Ratio,
    /// Conclusion from the ratio and its interval.
    pub verdict: ComparisonVerdict,
}

/// Conclusion about the second run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ComparisonVerdict {
    Faster,
    Slower,
    /// The difference is not significant, or there are too few rounds for an interval.
    Tie,
}

impl ComparisonVerdict {
    /// Returns the conclusion from a ratio: a tie if it is within the noise, or if it has no interval.
    pub fn of(ratio: &Ratio, noise: f64) -> Self {
        match (!ratio.has_interval() || ratio.is_tie(noise), ratio.value < 1.0) {
            (true, _) => Self::Tie,
            (false, true) => Self::Faster,
            (false, false) => Self::Slower,
        }
    }
}

/// Returns a sentence about the rows whose ratios have no interval, with the remedy; `None` if all have one.
pub fn unjudged<'a>(ratios: impl Iterator<Item = &'a Ratio>) -> Option<String> {
    let (mut without, mut all) = (0, 0);
    for ratio in ratios {
        all += 1;
        without += u64::from(!ratio.has_interval());
    }
    let rows = counted(all, "row");
    (without > 0).then(|| {
        format!(
            "{without} of {rows} not judged: fewer than {MIN_SAMPLES} rounds of a run give no interval; measure \
             again with --rounds 5, or with a larger --budget"
        )
    })
}

/// Returns whether two rows are the same cell. Ignores the directory, which may differ between machines.
pub(super) fn same_cell(a: &BenchRow, b: &BenchRow) -> bool {
    let key = |row: &BenchRow| {
        let GroupKey {
            workload,
            bytes,
            fs,
            dir: _,
            cache,
            sync,
            sync_every_records,
            sync_every_bytes,
            advice,
        } = row.group.clone();
        (
            (workload, bytes, fs, cache, sync, sync_every_records, sync_every_bytes, advice),
            (row.method.clone(), row.record_bytes, row.buffer_bytes, row.mode.clone()),
            (row.vector_records, row.queue_depth),
        )
    };
    key(a) == key(b)
}

/// Returns the label of a row on one line.
pub fn label(row: &BenchRow) -> String {
    let mut text = format!("{} {} {}", row.group.workload, row.method, crate::Size(row.record_bytes));
    if let Some(bytes) = row.buffer_bytes {
        text += &format!(" buffer {}", crate::Size(bytes));
    }
    for (name, value) in [("mode", row.mode.as_ref()), ("advice", row.group.advice.as_ref())] {
        if let Some(value) = value {
            text += &format!(" {name} {value}");
        }
    }
    text + &format!(" ({}, {}, sync {})", row.group.fs, row.group.cache, row.group.sync)
}

/// Compares the rows of two runs; `names` are the names of their files.
pub fn compare(names: [&str; 2], a: &BenchDocument, b: &BenchDocument) -> BenchComparison {
    let noise = a.noise.floor().max(b.noise.floor());
    let mut rows = Vec::new();
    let mut only_a = Vec::new();
    for row in a.rows.iter().filter(|row| row.cannot.is_none()) {
        match b.rows.iter().find(|other| same_cell(row, other)).and_then(|other| compared(row, other, noise))
        {
            Some(compared) => rows.push(compared),
            None => only_a.push(label(row)),
        }
    }
    let is_in_a = |row: &BenchRow| a.rows.iter().any(|other| other.cannot.is_none() && same_cell(row, other));
    let only_b = b.rows.iter().filter(|row| row.cannot.is_none() && !is_in_a(row)).map(label).collect();
    let mut warnings = warnings(a, b);
    warnings.extend(unjudged(rows.iter().map(|row: &ComparedRow| &row.ratio)));
    BenchComparison {
        schema: SCHEMA.into(),
        a: names[0].into(),
        b: names[1].into(),
        noise,
        rows,
        only_a,
        only_b,
        warnings,
        runs: [a, b].map(ComparedRun::of).into(),
    }
}

fn compared(a: &BenchRow, b: &BenchRow, noise: f64) -> Option<ComparedRow> {
    let ratio = Ratio::unpaired(&b.samples_s, &a.samples_s)?;
    let verdict = ComparisonVerdict::of(&ratio, noise);
    Some(ComparedRow {
        group: a.group.clone(),
        method: a.method.clone(),
        record_bytes: a.record_bytes,
        buffer_bytes: a.buffer_bytes,
        mode: a.mode.clone(),
        a_s: a.elapsed_s.as_ref()?.median,
        b_s: b.elapsed_s.as_ref()?.median,
        ratio,
        verdict,
    })
}

fn warnings(a: &BenchDocument, b: &BenchDocument) -> Vec<String> {
    let mut warnings = Vec::new();
    if a.machine != b.machine {
        warnings.push(format!(
            "the two runs are of different machines or kernels ({}, {}; {}, {})",
            a.machine.cpu, a.machine.kernel, b.machine.cpu, b.machine.kernel
        ));
    } else {
        warnings.push(
            "the two runs were not interleaved: the machine may have been faster in one of them".into(),
        );
    }
    for (name, document) in [("first", a), ("second", b)] {
        if !document.complete {
            warnings.push(format!("the {name} run did not finish"));
        }
        if document.noise.wall.is_none() {
            warnings.push(format!(
                "the {name} run has too few A/A pairs: {:.0} % of noise is assumed",
                UNKNOWN_NOISE * 100.0
            ));
        }
    }
    warnings
}
