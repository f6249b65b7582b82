//! Several runs of `weir bench` over time (schema weir-bench-trend/1): levels of each row and where they change.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::compare::{ComparedRun, ComparisonVerdict, label, same_cell, unjudged};
use super::{BenchDocument, BenchRow, GroupKey};
use crate::Ratio;
use crate::stats::MIN_SAMPLES;

/// Value of [`BenchTrend::schema`].
pub const SCHEMA: &str = "weir-bench-trend/1";

/// Probability with which the spread between runs alone passes as a change, by Student's t distribution.
const SPREAD_LEVEL: f64 = 0.02;
/// The same for 3 runs, whose spread is that of the two runs of one level: at 2 % almost no change would pass.
const SPREAD_LEVEL_OF_3: f64 = 0.05;

/// The rows of several runs, the oldest run first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchTrend {
    /// [`SCHEMA`].
    pub schema: String,
    /// The runs by their time.
    pub runs: Vec<TrendRun>,
    /// The largest A/A noise of the runs. A difference within this share is no change.
    pub noise: f64,
    /// Rows that the last run measured and another run too.
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
    let measured = last.iter().filter(|row| is_measured(row));
    let rows: Vec<TrendRow> = measured.filter_map(|row| trend_row(row, &runs, noise)).collect();
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

fn is_measured(row: &BenchRow) -> bool {
    row.elapsed_s.is_some_and(|elapsed| elapsed.median > 0.0)
}

/// Returns the trend of a row that the last of the runs measured; `None` if no other run did.
fn trend_row(row: &BenchRow, runs: &[(String, BenchDocument)], noise: f64) -> Option<TrendRow> {
    let same: Vec<(usize, &BenchRow)> = runs
        .iter()
        .enumerate()
        .filter_map(|(at, (_, run))| Some((at, run.rows.iter().find(|other| same_cell(row, other))?)))
        .filter(|(_, row)| is_measured(row))
        .collect();
    let points: Vec<TrendPoint> = same
        .iter()
        .filter_map(|(run, row)| {
            let elapsed = row.elapsed_s?;
            Some(TrendPoint { run: *run, median_s: elapsed.median, ci95: elapsed.ci95 })
        })
        .collect();
    let times: Vec<RunTime> = same.iter().filter_map(|(_, row)| RunTime::of(row)).collect();
    let starts = change_points(&times, noise);
    let levels: Vec<f64> = bounds(&starts, times.len())
        .iter()
        .map(|[from, to]| mean(&times[*from..*to], |run| run.log))
        .collect();
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

/// The logarithm of a run's time.
#[derive(Debug, Clone, Copy)]
struct RunTime {
    log: f64,
    /// The ends of its logarithm's 95 % interval.
    ci95: [f64; 2],
    has_interval: bool,
}

impl RunTime {
    fn of(row: &BenchRow) -> Option<Self> {
        let elapsed = row.elapsed_s?;
        let has_interval = row.samples_s.len() >= MIN_SAMPLES;
        Some(Self { log: elapsed.median.ln(), ci95: elapsed.ci95.map(f64::ln), has_interval })
    }
}

fn mean(runs: &[RunTime], value: impl Fn(&RunTime) -> f64) -> f64 {
    runs.iter().map(value).sum::<f64>() / runs.len() as f64
}

/// The variance of runs around their levels, and its degrees of freedom.
#[derive(Debug, Clone, Copy)]
struct Spread {
    variance: f64,
    freedom: usize,
}

impl Spread {
    /// Returns the spread within two levels; `None` if each is of one run.
    fn of(a: &[RunTime], b: &[RunTime]) -> Option<Self> {
        let squares = |runs: &[RunTime]| {
            let middle = mean(runs, |run| run.log);
            runs.iter().map(|run| (run.log - middle).powi(2)).sum::<f64>()
        };
        let freedom = a.len() + b.len() - 2;
        (freedom > 0).then(|| Self { variance: (squares(a) + squares(b)) / freedom as f64, freedom })
    }

    /// Returns whether the step between two levels is larger than this spread explains.
    fn is_exceeded(&self, a: &[RunTime], b: &[RunTime]) -> bool {
        let level = if self.freedom == 1 { SPREAD_LEVEL_OF_3 } else { SPREAD_LEVEL };
        let error = (self.variance * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
        let student = StudentsT::new(0.0, 1.0, self.freedom as f64);
        student.is_ok_and(|student| step(a, b).abs() > student.inverse_cdf(1.0 - level / 2.0) * error)
    }
}

/// Returns the indexes at which a new level begins (binary segmentation of the logarithms of the times).
fn change_points(runs: &[RunTime], noise: f64) -> Vec<usize> {
    let mut starts = Vec::new();
    split(runs, 0, noise, None, &mut starts);
    starts.sort_unstable();
    starts
}

/// Adds the changes in a part of the runs. `around` is the spread of the larger part that it was split from.
fn split(runs: &[RunTime], offset: usize, noise: f64, around: Option<Spread>, starts: &mut Vec<usize>) {
    let Some(at) = best_split(runs) else { return };
    let (a, b) = runs.split_at(at);
    let spread = Spread::of(a, b).or(around);
    if is_change(a, b, noise, spread) {
        starts.push(offset + at);
        split(a, offset, noise, spread, starts);
        split(b, offset + at, noise, spread, starts);
    }
}

/// Returns the split with the largest step, weighted by the number of runs on both sides.
fn best_split(runs: &[RunTime]) -> Option<usize> {
    let of = |at: usize| {
        let (a, b) = runs.split_at(at);
        let weight = (a.len() * b.len()) as f64 / runs.len() as f64;
        (at, step(a, b).abs() * weight.sqrt())
    };
    (1..runs.len()).map(of).max_by(|a, b| a.1.total_cmp(&b.1)).map(|best| best.0)
}

fn step(a: &[RunTime], b: &[RunTime]) -> f64 {
    mean(b, |run| run.log) - mean(a, |run| run.log)
}

/// Returns whether the level changes between two parts: by more than the noise, by more than the intervals of their runs reach,
/// and by more than the spread between runs explains. Of rows of 3 and more runs on an unchanged machine, fewer than one in 50 has a
/// change if the runs differ by no more than their samples do, and up to one in four if they differ twice as much.
fn is_change(a: &[RunTime], b: &[RunTime], noise: f64, spread: Option<Spread>) -> bool {
    let are_apart = match a.len() + b.len() {
        // Of few runs, each must be apart from each on the other side.
        2 | 3 => {
            a.iter().chain(b).all(|run| run.has_interval)
                && a.iter().all(|a| b.iter().all(|b| apart(a.ci95, b.ci95)))
        }
        _ => apart(mean_interval(a), mean_interval(b)),
    };
    step(a, b).abs() > (1.0 + noise).ln() && are_apart && spread.is_none_or(|spread| spread.is_exceeded(a, b))
}

/// Returns whether two intervals do not overlap.
fn apart(a: [f64; 2], b: [f64; 2]) -> bool {
    a[1] < b[0] || b[1] < a[0]
}

fn mean_interval(runs: &[RunTime]) -> [f64; 2] {
    [0, 1].map(|end| mean(runs, |run| run.ci95[end]))
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
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Returns runs with these times, and intervals of ± 1 %.
    fn runs(times: &[f64]) -> Vec<RunTime> {
        let of = |time: &f64| {
            let log = time.ln();
            RunTime { log, ci95: [log - 0.01, log + 0.01], has_interval: true }
        };
        times.iter().map(of).collect()
    }

    #[test]
    fn a_step_is_found_and_noise_is_not() {
        let steady = runs(&[1.0, 1.02, 0.99, 1.01, 0.98, 1.0]);
        assert_eq!(change_points(&steady, 0.05), [0usize; 0]);
        let step = runs(&[1.0, 1.02, 0.99, 1.31, 1.29, 1.3]);
        assert_eq!(change_points(&step, 0.05), [3]);
        let two = runs(&[1.0, 1.01, 0.99, 1.5, 1.51, 1.49, 0.8, 0.81, 0.8]);
        assert_eq!(change_points(&two, 0.05), [3, 6]);
        assert_eq!(change_points(&runs(&[1.0, 1.02, 0.99, 1.3]), 0.05), [3], "the last run alone");
        assert_eq!(change_points(&runs(&[1.0, 1.3]), 0.05), [1]);
        assert_eq!(change_points(&runs(&[1.0, 1.02, 1.3]), 0.05), [2]);
        assert_eq!(change_points(&runs(&[1.0]), 0.05), [0usize; 0]);
        let wild = runs(&[1.0, 1.6, 0.7, 1.4, 0.8, 1.5]);
        assert_eq!(change_points(&wild, 0.05), [0usize; 0], "the spread between runs is as large");
    }

    #[test]
    fn runs_whose_intervals_overlap_have_one_level() {
        let wide = |times: &[f64], half: f64| -> Vec<RunTime> {
            let widened = |run: RunTime| RunTime { ci95: [run.log - half, run.log + half], ..run };
            runs(times).into_iter().map(widened).collect()
        };
        for times in [&[1.0, 1.3][..], &[1.0, 1.001, 1.3], &[1.0, 1.3, 1.301], &[1.0, 1.0, 1.0, 1.3, 1.3]] {
            assert_eq!(change_points(&wide(times, 0.15), 0.05), [0usize; 0], "{times:?}");
            assert_eq!(change_points(&wide(times, 0.12), 0.05).len(), 1, "{times:?}");
        }
        let mut one_round = runs(&[1.0, 1.3]);
        one_round[1].has_interval = false;
        assert_eq!(change_points(&one_round, 0.05), [0usize; 0]);
    }

    /// Returns a value around 0 with this standard deviation; some are far away, as on a busy machine.
    fn noise_of(random: &mut StdRng, deviation: f64) -> f64 {
        let sum: f64 = (0..6).map(|_| random.random_range(-1.0..1.0)).sum();
        let is_disturbed = random.random_bool(0.05);
        sum / 2.0_f64.sqrt() * deviation * if is_disturbed { 4.0 } else { 1.0 }
    }

    /// Returns runs of so many rounds, of the same level.
    fn steady_runs(rounds: usize, random: &mut StdRng) -> Vec<RunTime> {
        let run = |random: &mut StdRng| {
            let samples: Vec<f64> = (0..rounds).map(|_| noise_of(random, 0.1).exp()).collect();
            let elapsed = crate::Summary::of(&samples).unwrap();
            RunTime { log: elapsed.median.ln(), ci95: elapsed.ci95.map(f64::ln), has_interval: true }
        };
        (0..500).map(|_| run(random)).collect()
    }

    /// Returns the share of rows in which a change is found, of rows of `count` steady runs whose levels have the deviation `between`.
    fn false_share(steady: &[RunTime], count: usize, between: f64, random: &mut StdRng) -> f64 {
        const ROWS: usize = 2000;
        let run = |random: &mut StdRng| {
            let (run, level) = (steady[random.random_range(0..steady.len())], noise_of(random, between));
            RunTime { log: run.log + level, ci95: run.ci95.map(|end| end + level), ..run }
        };
        let row = |random: &mut StdRng| (0..count).map(|_| run(random)).collect::<Vec<_>>();
        let changed = (0..ROWS).filter(|_| !change_points(&row(random), 0.0).is_empty());
        changed.count() as f64 / ROWS as f64
    }

    #[test]
    fn runs_of_one_distribution_have_one_level() {
        let mut random = StdRng::seed_from_u64(7);
        for rounds in [3, 5, 7, 15] {
            let steady = steady_runs(rounds, &mut random);
            for count in [3, 4, 5, 6, 8, 12, 20] {
                for (between, most) in [(0.0, 0.02), (0.2, 0.25)] {
                    let share = false_share(&steady, count, between, &mut random);
                    assert!(
                        share <= most,
                        "{count} runs of {rounds} rounds, {between} between them: {share}"
                    );
                }
            }
        }
    }

    #[test]
    fn levels_reach_from_change_to_change() {
        assert_eq!(bounds(&[3, 5], 9), [[0, 3], [3, 5], [5, 9]]);
        assert_eq!(bounds(&[], 2), [[0, 2]]);
    }
}
