//! tr2u, which reads and writes single bytes, bare and traced in each mode; and tr2b, the fixed program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench_dir::BenchDir;
use crate::figure::{at_most, paired, ratio};
use crate::parts::say;
use crate::targets::Target;
use crate::traced::{Traced, run_on};
use crate::{BoxError, process};

/// Bytes of the input if a bare run takes at most `LONG_S`; otherwise `FEWER_BYTES`, so that enough rounds fit the budget.
const BYTES: usize = 5_000_000;
const FEWER_BYTES: usize = 2_000_000;
const LONG_S: f64 = 4.0;

/// Time for all rounds, within the limits of their number.
const BUDGET: Duration = Duration::from_secs(80);
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=15;

/// The compared modes of `weir trace`, by their options.
const MODES: [&[&str]; 3] = [&[], &["--exact"], &["--engine", "ptrace"]];

/// The results of one round; times in seconds.
struct Round {
    bare: f64,
    fixed: f64,
    /// In the order of [`MODES`].
    traced: Vec<Traced>,
}

/// Runs a program alone and returns its wall-clock seconds.
pub fn alone(bench: &BenchDir, program: &str, input: &Path, output: &Path) -> Result<f64, BoxError> {
    let mut command = Command::new(bench.path(program));
    process::redirect(&mut command, input, output)?;
    process::seconds(&mut command)
}

/// Returns the bytes of the input with which the rounds fit the budget.
fn size(bench: &BenchDir) -> Result<usize, BoxError> {
    let probe = bench.pick(BYTES / 10, BYTES / 100);
    let input = bench.input(probe)?;
    let seconds = alone(bench, "tr2u", &input, &bench.path("out"))?;
    // The first traced run also measures the prices of calls, so it must not be a sample.
    run_on(bench, &[], "tr2u", &input, &bench.path("out"))?;
    let long = seconds * (BYTES as f64 / probe as f64) > LONG_S;
    Ok(bench.pick(if long { FEWER_BYTES } else { BYTES }, 300_000))
}

/// Runs every program once, in an order that rotates from round to round. Fails if the outputs differ.
fn round(bench: &BenchDir, number: usize, input: &Path) -> Result<Round, BoxError> {
    let output = |run: usize| -> PathBuf { bench.path(&format!("out-{run}")) };
    let (mut bare, mut fixed) = (0.0, 0.0);
    let mut traced: Vec<Option<Traced>> = MODES.iter().map(|_| None).collect();
    let all = MODES.len() + 2;
    for step in 0..all {
        let run = (number + step) % all;
        match run.checked_sub(2) {
            None if run == 0 => bare = alone(bench, "tr2u", input, &output(run))?,
            None => fixed = alone(bench, "tr2b", input, &output(run))?,
            Some(mode) => traced[mode] = Some(run_on(bench, MODES[mode], "tr2u", input, &output(run))?),
        }
    }
    let expected = std::fs::read(output(0))?;
    for run in 1..all {
        if std::fs::read(output(run))? != expected {
            return Err(format!("the output of run {run} differs from the bare one's").into());
        }
    }
    Ok(Round { bare, fixed, traced: traced.into_iter().flatten().collect() })
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let bytes = size(bench)?;
    let input = bench.input(bytes)?;
    let started = Instant::now();
    let mut rounds = Vec::new();
    while rounds.len() < bench.pick(*ROUNDS.start(), 3)
        || (!bench.quick && rounds.len() < *ROUNDS.end() && started.elapsed() < BUDGET)
    {
        rounds.push(round(bench, rounds.len(), &input)?);
    }
    say(
        "trace",
        &format!("{} rounds of {bytes} bytes in {:.0} s", rounds.len(), started.elapsed().as_secs_f64()),
    );
    costs(&rounds, bytes, rows)?;
    rows.push(prediction(&rounds, bytes)?);
    Ok(())
}

/// Adds the rows of the overhead of each mode.
fn costs(rounds: &[Round], bytes: usize, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let whole = |mode: usize| paired(rounds.iter().map(|round| (round.traced[mode].whole, round.bare)));
    let after = |mode: usize| -> Result<_, BoxError> {
        let pairs: Result<Vec<_>, BoxError> =
            rounds.iter().map(|round| Ok((round.traced[mode].after_startup()?, round.bare))).collect();
        paired(pairs?)
    };
    let engine = |mode: usize| rounds.first().map_or("?", |round| round.traced[mode].engine());
    let name = |what: &str| format!("tr2u, {bytes} bytes, {what}");
    let mut default = at_most(name("default, whole run"), 1.10, &whole(0)?, "");
    let mut default_after = at_most(name("default, after start-up"), 1.10, &after(0)?, "");
    let remark = format!("; whole run {}", ratio(&whole(1)?));
    let mut exact = at_most(name("--exact, after start-up"), 1.5, &after(1)?, &remark);
    let remark = format!("; after start-up {}", ratio(&after(2)?));
    let ptrace = at_most(name("--engine ptrace, whole run"), 1.3, &whole(2)?, &remark);
    // These targets apply to eBPF only.
    for (row, mode) in [(&mut default, 0), (&mut default_after, 0), (&mut exact, 1)] {
        if engine(mode) != "ebpf" {
            row.measured += &format!(", but by {}: eBPF does not work on this machine", engine(mode));
            row.reached = false;
        }
    }
    rows.extend([default, default_after, exact, ptrace]);
    Ok(())
}

/// Compares the gain that the findings of the default run predict with the measured gain of the fixed program.
fn prediction(rounds: &[Round], bytes: usize) -> Result<Target, BoxError> {
    let name = format!("gain predicted for tr2u, {bytes} bytes, over gain of tr2b");
    let target = "within 1.5 times".to_string();
    if rounds.iter().any(|round| round.traced[0].predicted_gain() <= 0.0) {
        let measured = "a run had no finding with a gain".to_string();
        return Ok(Target { name, target, measured, reached: false });
    }
    let predicted_over_measured =
        paired(rounds.iter().map(|round| (round.traced[0].predicted_gain(), round.bare - round.fixed)))?;
    let reached = (1.0 / 1.5..=1.5).contains(&predicted_over_measured.value)
        && predicted_over_measured.n == rounds.len();
    Ok(Target { name, target, measured: ratio(&predicted_over_measured), reached })
}
