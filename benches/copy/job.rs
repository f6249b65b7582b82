//! Runs and times copies, in interleaved rounds.

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

/// Runs the jobs in rounds. Returns the samples, one row per round.
pub fn measure(
    rounds: usize,
    jobs: &[&Job],
    source: &Path,
    target: &Path,
    prepare: &dyn Fn() -> Result<(), BoxError>,
) -> Result<Vec<Vec<Sample>>, BoxError> {
    let mut rows = Vec::new();
    // The first round warms up, and is dropped.
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
        Err(_) => {}
    }
    Ok(())
}

fn run(job: &Job, source: &Path, target: &Path) -> Result<Sample, BoxError> {
    let cpu = || children_cpu_seconds().0 + children_cpu_seconds().1;
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

/// Returns the median ratio of two jobs.
pub fn ratio_of(
    rows: &[Vec<Sample>],
    a: usize,
    b: usize,
    value: fn(&Sample) -> f64,
) -> Result<Ratio, BoxError> {
    paired(rows.iter().map(|row| (value(&row[a]), value(&row[b]))))
}

/// Returns the number of the job, from the second one, with the least median.
pub fn best_rival(rows: &[Vec<Sample>], first: usize, value: fn(&Sample) -> f64) -> usize {
    let median = |job: usize| {
        let mut values: Vec<f64> = rows.iter().map(|row| value(&row[job])).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let jobs = rows.first().map_or(0, Vec::len);
    (first..jobs).min_by(|a, b| median(*a).total_cmp(&median(*b))).unwrap_or(first)
}
