//! Runs and times copies, in interleaved rounds.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use weir_model::Ratio;
use weir_sys::clock::children_cpu_seconds;

use crate::BoxError;
use crate::figure::paired;
use crate::targets::built::weir;

/// A program with its arguments, as a line for sh. `$S` is the source, `$D` the target, `$W` weir.
pub struct Job {
    pub name: &'static str,
    pub line: &'static str,
}

/// Wall-clock and CPU seconds of a run.
#[derive(Clone, Copy)]
pub struct Sample {
    pub wall_s: f64,
    pub cpu_s: f64,
}

/// Returns those of the jobs whose program is installed.
pub fn installed(jobs: &[Job]) -> Vec<&Job> {
    let has = |program: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).exists()))
    };
    jobs.iter().filter(|job| job.name.starts_with("weir") || has(job.name)).collect()
}

/// Runs each job once in each round, in an order that rotates from round to round. Deletes `target` and calls `prepare`
/// before each run. Returns the samples: one row per round, one column per job in the order of `jobs`. A first round,
/// which warms up, is dropped.
pub fn measure(
    rounds: usize,
    jobs: &[&Job],
    source: &Path,
    target: &Path,
    prepare: &dyn Fn() -> Result<(), BoxError>,
) -> Result<Vec<Vec<Sample>>, BoxError> {
    let mut rows = Vec::new();
    for round in 0..=rounds {
        let mut row = vec![Sample { wall_s: 0.0, cpu_s: 0.0 }; jobs.len()];
        for step in 0..jobs.len() {
            let number = (round + step) % jobs.len();
            remove(target)?;
            prepare()?;
            row[number] = run(jobs[number], source, target)?;
        }
        rows.push(row);
    }
    remove(target)?;
    rows.remove(0);
    Ok(rows)
}

fn remove(target: &Path) -> Result<(), BoxError> {
    match std::fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(target)?,
        Ok(_) => std::fs::remove_file(target)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn run(job: &Job, source: &Path, target: &Path) -> Result<Sample, BoxError> {
    let cpu = || {
        let (user_s, system_s) = children_cpu_seconds();
        user_s + system_s
    };
    let (started, before) = (Instant::now(), cpu());
    let status = Command::new("sh")
        .args(["-c", job.line])
        .env("W", weir())
        .env("S", source)
        .env("D", target)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let sample = Sample { wall_s: started.elapsed().as_secs_f64(), cpu_s: cpu() - before };
    if status.success() { Ok(sample) } else { Err(format!("{}: {status}", job.line).into()) }
}

/// Returns the median over the rounds of the ratio of job `a` to job `b`, with its interval.
pub fn ratio_of(
    rows: &[Vec<Sample>],
    a: usize,
    b: usize,
    value: fn(&Sample) -> f64,
) -> Result<Ratio, BoxError> {
    paired(rows.iter().map(|row| (value(&row[a]), value(&row[b]))))
}

/// Returns the index of the job with the smallest median among the columns `first..`; `first` if there are none.
pub fn best_rival(rows: &[Vec<Sample>], first: usize, value: fn(&Sample) -> f64) -> usize {
    let median = |job: usize| {
        let mut values: Vec<f64> = rows.iter().map(|row| value(&row[job])).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let jobs = rows.first().map_or(0, Vec::len);
    (first..jobs).min_by(|a, b| median(*a).total_cmp(&median(*b))).unwrap_or(first)
}
