//! `make bench-run`: what `weir run` saves and costs, beside stdbuf and the program as it is. Arguments choose parts:
//! `cargo bench -p weir-cli --bench run -- coalesce delay`.
//!
//! * A sample is one whole run, from the fork to the moment when the process can be reaped. Runs that are compared are
//!   interleaved in rounds whose order turns; a figure is the median of the ratios within the rounds with a 95 %
//!   bootstrap interval.
//! * `WEIR_BENCH_QUICK=1` is for trying the benchmark itself: few rounds, little data, its own JSON.

#[path = "../targets/mod.rs"]
mod targets;

mod bed;
mod bulk;
mod coalesce;
#[path = "../trace/figure.rs"]
#[allow(dead_code)] // not every benchmark shows every form
mod figure;
#[path = "../trace/process.rs"]
#[allow(dead_code)]
mod process;
mod putc;
mod rescue;
mod rounds;
mod slow;
mod start;

use std::time::Instant;

use bed::Bed;
use targets::Target;

type Failed = Box<dyn std::error::Error>;

/// A part of the benchmark: its name, what it does in words, and the function that adds its rows.
type Part = (&'static str, &'static str, fn(&Bed, &mut Vec<Target>) -> Result<(), Failed>);

const PARTS: [Part; 6] = [
    ("coalesce", "a byte a call: bare, gathered, and the fixed program", coalesce::rows),
    ("bulk", "short lines in bulk to a pipe: bare, --max-delay, stdbuf -oL", bulk::rows),
    ("slow", "ten lines a second: when each arrives", slow::rows),
    ("start", "what a start costs, beside stdbuf", start::rows),
    ("rescue", "what --rescue costs a compiler and tr2b", rescue::rows),
    ("putc", "putc_unlocked at full speed with --max-delay 1ms", putc::rows),
];

fn say(what: &str) {
    eprintln!("bench-run: {what}");
}

fn main() -> Result<(), Failed> {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(word) = chosen.iter().find(|word| PARTS.iter().all(|(name, ..)| name != word)) {
        return Err(format!("no part is called '{word}': {}", PARTS.map(|part| part.0).join(", ")).into());
    }
    let started = Instant::now();
    let bed = Bed::make()?;
    let mut rows = Vec::new();
    for (name, words, part) in PARTS {
        if chosen.is_empty() || chosen.iter().any(|word| word == name) {
            say(words);
            part(&bed, &mut rows)?;
        }
    }
    // A part, or a trial, is not the report: it must not be taken for it.
    let name = match (bed.quick, chosen.is_empty()) {
        (true, _) => "run-quick",
        (_, true) => "run",
        _ => "run-part",
    };
    targets::finish(name, &rows)?;
    say(&format!("took {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}
