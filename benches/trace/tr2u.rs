//! tr2u, a byte a call, bare and under each way to watch it; and tr2b, which is tr2u once it is fixed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::figure::{at_most, paired, ratio};
use crate::parts::say;
use crate::targets::Target;
use crate::traced::{Traced, run_on};
use crate::{Failed, process};

/// Bytes where a bare run of them takes at most `LONG_S`; else fewer, so that all has its time.
const BYTES: usize = 5_000_000;
const FEWER_BYTES: usize = 2_000_000;
const LONG_S: f64 = 4.0;

/// Rounds go on until they have taken so long, but there are never fewer, nor more.
const BUDGET: Duration = Duration::from_secs(80);
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=15;

/// The ways of watching that are compared, by their options.
const WAYS: [&[&str]; 3] = [&[], &["--exact"], &["--engine", "ptrace"]];

/// What one round gave.
struct Round {
    bare: f64,
    fixed: f64,
    /// In the order of [`WAYS`].
    traced: Vec<Traced>,
}

/// Wall-clock seconds of one of the programs alone.
pub fn alone(bed: &Bed, program: &str, input: &Path, output: &Path) -> Result<f64, Failed> {
    let mut command = Command::new(bed.path(program));
    process::redirect(&mut command, input, output)?;
    process::seconds(&mut command)
}

/// So many bytes that the rounds fit into their time.
fn size(bed: &Bed) -> Result<usize, Failed> {
    let probe = bed.pick(BYTES / 10, BYTES / 100);
    let input = bed.input(probe)?;
    let seconds = alone(bed, "tr2u", &input, &bed.path("out"))?;
    // Prices are measured behind the first run here: it must not be one that counts.
    run_on(bed, &[], "tr2u", &input, &bed.path("out"))?;
    let long = seconds * (BYTES as f64 / probe as f64) > LONG_S;
    Ok(bed.pick(if long { FEWER_BYTES } else { BYTES }, 300_000))
}

/// Every program once; the order turns from round to round. All outputs must be alike.
fn round(bed: &Bed, number: usize, input: &Path) -> Result<Round, Failed> {
    let output = |which: usize| -> PathBuf { bed.path(&format!("out-{which}")) };
    let (mut bare, mut fixed) = (0.0, 0.0);
    let mut traced: Vec<Option<Traced>> = WAYS.iter().map(|_| None).collect();
    let all = WAYS.len() + 2;
    for step in 0..all {
        let which = (number + step) % all;
        match which.checked_sub(2) {
            None if which == 0 => bare = alone(bed, "tr2u", input, &output(which))?,
            None => fixed = alone(bed, "tr2b", input, &output(which))?,
            Some(way) => traced[way] = Some(run_on(bed, WAYS[way], "tr2u", input, &output(which))?),
        }
    }
    let right = std::fs::read(output(0))?;
    for which in 1..all {
        if std::fs::read(output(which))? != right {
            return Err(format!("the output of run {which} differs from the bare one's").into());
        }
    }
    Ok(Round { bare, fixed, traced: traced.into_iter().flatten().collect() })
}

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    let bytes = size(bed)?;
    let input = bed.input(bytes)?;
    let started = Instant::now();
    let mut rounds = Vec::new();
    while rounds.len() < bed.pick(*ROUNDS.start(), 3)
        || (!bed.quick && rounds.len() < *ROUNDS.end() && started.elapsed() < BUDGET)
    {
        rounds.push(round(bed, rounds.len(), &input)?);
    }
    say(
        "trace",
        &format!("{} rounds of {bytes} bytes in {:.0} s", rounds.len(), started.elapsed().as_secs_f64()),
    );
    costs(&rounds, bytes, rows)?;
    rows.push(promise(&rounds, bytes)?);
    Ok(())
}

/// What each way of watching costs.
fn costs(rounds: &[Round], bytes: usize, rows: &mut Vec<Target>) -> Result<(), Failed> {
    let whole = |way: usize| paired(rounds.iter().map(|round| (round.traced[way].whole, round.bare)));
    let after = |way: usize| -> Result<_, Failed> {
        let pairs: Result<Vec<_>, Failed> =
            rounds.iter().map(|round| Ok((round.traced[way].after_startup()?, round.bare))).collect();
        paired(pairs?)
    };
    let engine = |way: usize| rounds.first().map_or("?", |round| round.traced[way].engine());
    let name = |what: &str| format!("tr2u, {bytes} bytes, {what}");
    let mut default = at_most(name("default, whole run"), 1.10, &whole(0)?, "");
    let mut default_after = at_most(name("default, after start-up"), 1.10, &after(0)?, "");
    let remark = format!("; whole run {}", ratio(&whole(1)?));
    let mut exact = at_most(name("--exact, after start-up"), 1.5, &after(1)?, &remark);
    let remark = format!("; after start-up {}", ratio(&after(2)?));
    let ptrace = at_most(name("--engine ptrace, whole run"), 1.3, &whole(2)?, &remark);
    // These targets are for the engine in the kernel, and without it nothing is said of them.
    for (row, way) in [(&mut default, 0), (&mut default_after, 0), (&mut exact, 1)] {
        if engine(way) != "ebpf" {
            row.measured += &format!(", but by {}: eBPF does not work here", engine(way));
            row.reached = false;
        }
    }
    rows.extend([default, default_after, exact, ptrace]);
    Ok(())
}

/// What the findings of the default run promise, against what the fixed program saves.
fn promise(rounds: &[Round], bytes: usize) -> Result<Target, Failed> {
    let name = format!("gain predicted for tr2u, {bytes} bytes, over gain of tr2b");
    let target = "within 1.5 times".to_string();
    if rounds.iter().any(|round| round.traced[0].promised() <= 0.0) {
        let measured = "a run had no finding with a gain".to_string();
        return Ok(Target { name, target, measured, reached: false });
    }
    let is = paired(rounds.iter().map(|round| (round.traced[0].promised(), round.bare - round.fixed)))?;
    let reached = (1.0 / 1.5..=1.5).contains(&is.value) && is.n == rounds.len();
    Ok(Target { name, target, measured: ratio(&is), reached })
}
