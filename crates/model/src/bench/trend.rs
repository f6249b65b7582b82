//! Several runs of `weir bench` over time (schema weir-bench-trend/1): levels of each row and where they change.

use serde::{Deserialize, Serialize};

use super::compare::{ComparedRun, ComparisonVerdict, label, same_cell, unjudged};
use super::{BenchDocument, BenchRow, GroupKey};
use crate::Ratio;

/// Value of [`BenchTrend::schema`].
pub const SCHEMA: &str = "weir-bench-trend/1";

/// A change must be this many standard errors of the spread between runs. With 3, one of 400 rows without a change has one.
const STANDARD_ERRORS: f64 = 3.0;

/// The rows of several runs, the oldest run first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchTrend {
    /// [`SCHEMA`].
    pub schema: String,
    /// The runs by their time.
    pub runs: Vec<TrendRun>,
    /// The largest A/A noise of the runs. A difference within this share is no change.
    pub noise: f64,
    /// Rows of the last run that another run has too.
    pub rows: Vec<TrendRow>,
    /// Reasons to doubt the comparison, in sentences.
    pub warnings: Vec<String>,
    /// The circumstances of the last run; `None` in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ComparedRun>,
}

/// A run and when it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrendRun {
    /// Name of the file.
    pub name: String,
    /// Start of the run in UTC, as in RFC 3339.
    pub started: String,
    /// Kernel release, as uname(2) returns it.
    pub kernel: String,
}

/// One cell over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrendRow {
    /// Properties shared with the row's group.
    #[serde(flatten)]
    pub group: GroupKey,
    /// Name of the method.
    pub method: String,
    /// Bytes that each call of the program moves.
    pub record_bytes: u64,
    /// Name of the row on one line.
    pub label: String,
    /// The figure of each run that has the row.
    pub points: Vec<TrendPoint>,
    /// Runs with which a new level begins, with the ratio to the level before.
    pub changes: Vec<TrendChange>,
    /// The last run divided by the level before it.
    pub latest: Ratio,
    /// Conclusion about the last run.
    pub verdict: ComparisonVerdict,
}

/// The figure of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrendPoint {
    /// Index in [`BenchTrend::runs`].
    pub run: usize,
    /// Median elapsed seconds of the samples.
    pub median_s: f64,
    /// Ends of the 95 % interval of the median.
    pub ci95: [f64; 2],
}

/// The beginning of a new level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrendChange {
    /// Index in [`BenchTrend::runs`] of the first run of the new level.
    pub run: usize,
    /// Time of the new level divided by that of the old one.
    pub ratio: f64,
}

/// Returns the trend of runs with the names of their files; the runs may be in any order.
pub fn trend(mut runs: Vec<(String, BenchDocument)>) -> BenchTrend {
    runs.sort_by(|a, b| a.1.started.cmp(&b.1.started));
    let noise = runs.iter().map(|(_, run)| run.noise.floor()).fold(0.0, f64::max);
    let last = runs.last().map(|(_, run)| run.rows.clone()).unwrap_or_default();
    let rows: Vec<TrendRow> = last.iter().filter_map(|row| trend_row(row, &runs, noise)).collect();
    let mut warnings = warnings(&runs);
    warnings.extend(unjudged(rows.iter().map(|row| &row.latest)));
    let circumstances = runs.last().map(|(_, run)| ComparedRun::of(run));
    let run = |(name, run): (String, BenchDocument)| TrendRun {
        name,
        started: run.started,
        kernel: run.machine.kernel,
    };
    let runs = runs.into_iter().map(run).collect();
    BenchTrend { schema: SCHEMA.into(), runs, noise, rows, warnings, last: circumstances }
}

fn trend_row(row: &BenchRow, runs: &[(String, BenchDocument)], noise: f64) -> Option<TrendRow> {
    let same: Vec<(usize, &BenchRow)> = runs
        .iter()
        .enumerate()
        .filter_map(|(at, (_, run))| Some((at, run.rows.iter().find(|other| same_cell(row, other))?)))
        .filter(|(_, row)| row.elapsed_s.is_some_and(|elapsed| elapsed.median > 0.0))
        .collect();
    let points: Vec<TrendPoint> = same
        .iter()
        .filter_map(|(run, row)| {
            let elapsed = row.elapsed_s?;
            Some(TrendPoint { run: *run, median_s: elapsed.median, ci95: elapsed.ci95 })
        })
        .collect();
    let logs: Vec<f64> = points.iter().map(|point| point.median_s.ln()).collect();
    let starts = change_points(&logs, noise);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let levels: Vec<f64> =
        bounds(&starts, logs.len()).iter().map(|[from, to]| mean(&logs[*from..*to])).collect();
    let changes = starts.iter().zip(levels.windows(2));
    let changes =
        changes.map(|(at, pair)| TrendChange { run: points[*at].run, ratio: (pair[1] - pair[0]).exp() });
    // The level before the last run: since the last change before it.
    let (last, before) = same.split_last()?;
    let from = starts.iter().copied().filter(|at| *at < before.len()).max().unwrap_or(0);
    let level: Vec<f64> = before[from..].iter().flat_map(|(_, row)| &row.samples_s).copied().collect();
    let latest = Ratio::unpaired(&last.1.samples_s, &level)?;
    Some(TrendRow {
        group: row.group.clone(),
        method: row.method.clone(),
        record_bytes: row.record_bytes,
        label: label(row),
        changes: changes.collect(),
        points,
        verdict: ComparisonVerdict::of(&latest, noise),
        latest,
    })
}

/// Returns the first and the last index (exclusive) of each level.
fn bounds(starts: &[usize], len: usize) -> Vec<[usize; 2]> {
    let from = std::iter::once(0).chain(starts.iter().copied());
    from.zip(starts.iter().copied().chain([len])).map(|(from, to)| [from, to]).collect()
}

/// Returns the indexes at which a new level begins (binary segmentation of the logarithms of the times). A change is larger
/// than the noise, and than [`STANDARD_ERRORS`] of the spread within the two levels.
fn change_points(logs: &[f64], noise: f64) -> Vec<usize> {
    let mut starts = Vec::new();
    split(logs, 0, noise, &mut starts);
    starts.sort_unstable();
    starts
}

fn split(logs: &[f64], offset: usize, noise: f64, starts: &mut Vec<usize>) {
    let Some((at, _)) = best_split(logs).filter(|(at, step)| is_change(logs, *at, *step, noise)) else {
        return;
    };
    starts.push(offset + at);
    split(&logs[..at], offset, noise, starts);
    split(&logs[at..], offset + at, noise, starts);
}

/// Returns the split with the largest step, weighted by the number of runs on both sides, and that step.
fn best_split(logs: &[f64]) -> Option<(usize, f64)> {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let of = |at: usize| {
        let (a, b) = logs.split_at(at);
        let step = mean(b) - mean(a);
        let weight = (a.len() * b.len()) as f64 / logs.len() as f64;
        (at, step, step.abs() * weight.sqrt())
    };
    let best = (1..logs.len()).map(of).max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some((best.0, best.1))
}

fn is_change(logs: &[f64], at: usize, step: f64, noise: f64) -> bool {
    let (a, b) = logs.split_at(at);
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(|log| (log - mean).powi(2)).sum::<f64>()
    };
    let spread = (squares(a) + squares(b)) / logs.len().saturating_sub(2).max(1) as f64;
    let error = (spread * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    step.abs() > (1.0 + noise).ln() && step.abs() > STANDARD_ERRORS * error
}

fn warnings(runs: &[(String, BenchDocument)]) -> Vec<String> {
    let mut warnings = Vec::new();
    let machines = |of: fn(&BenchDocument) -> &String| {
        let mut all: Vec<&String> = runs.iter().map(|(_, run)| of(run)).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let (cpus, kernels) = (machines(|run| &run.machine.cpu), machines(|run| &run.machine.kernel));
    if cpus > 1 {
        warnings.push(format!("the runs are of machines with {cpus} different processors"));
    }
    if kernels > 1 {
        warnings.push(format!("the runs are of {kernels} different kernels"));
    }
    let unfinished: Vec<&str> =
        runs.iter().filter(|(_, run)| !run.complete).map(|(name, _)| name.as_str()).collect();
    if !unfinished.is_empty() {
        warnings.push(format!("not finished: {}", unfinished.join(", ")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(times: &[f64]) -> Vec<f64> {
        times.iter().map(|time| time.ln()).collect()
    }

    #[test]
    fn a_step_is_found_and_noise_is_not() {
        let steady = logs(&[1.0, 1.02, 0.99, 1.01, 0.98, 1.0]);
        assert_eq!(change_points(&steady, 0.05), [0usize; 0]);
        let step = logs(&[1.0, 1.02, 0.99, 1.31, 1.29, 1.3]);
        assert_eq!(change_points(&step, 0.05), [3]);
        let two = logs(&[1.0, 1.01, 0.99, 1.5, 1.51, 1.49, 0.8, 0.81, 0.8]);
        assert_eq!(change_points(&two, 0.05), [3, 6]);
        assert_eq!(change_points(&logs(&[1.0, 1.02, 0.99, 1.3]), 0.05), [3], "the last run alone");
        assert_eq!(change_points(&logs(&[1.0, 1.3]), 0.05), [1]);
        assert_eq!(change_points(&logs(&[1.0]), 0.05), [0usize; 0]);
        let wild = logs(&[1.0, 1.6, 0.7, 1.4, 0.8, 1.5]);
        assert_eq!(change_points(&wild, 0.05), [0usize; 0], "the spread between runs is as large");
    }

    #[test]
    fn levels_reach_from_change_to_change() {
        assert_eq!(bounds(&[3, 5], 9), [[0, 3], [3, 5], [5, 9]]);
        assert_eq!(bounds(&[], 2), [[0, 2]]);
    }
}
