//! `make bench-trace`: what `weir trace` costs the program that it watches, beside strace, perf trace and
//! bpftrace, and whether its counts and its predictions are right. Arguments choose parts:
//! `cargo bench -p weir-cli --bench trace -- tr2u attach`.
//!
//! How it measures:
//! * A sample is one whole run, from the fork to the moment when the process can be reaped. The runs that are
//!   compared are interleaved in rounds whose order turns; a figure is the median of the ratios within the
//!   rounds with a 95 % bootstrap interval.
//! * "After start-up" is the whole run less `overhead.startup_s` of its own JSON: what is left holds all else,
//!   also weir's own end, in which it judges and writes.
//! * Files lie in the target directory; what weir keeps of prices goes there too, and is measured once before.
//! * `WEIR_BENCH_QUICK=1` is for trying the benchmark itself: few rounds, little data, its own JSON.

#[path = "../targets/mod.rs"]
mod targets;

mod attach;
mod bed;
mod counts;
mod figure;
mod ordinary;
mod process;
mod rivals;
mod startup;
mod tr2u;
mod traced;

use std::time::Instant;

use bed::Bed;
use targets::Target;

type Failed = Box<dyn std::error::Error>;

/// A part of the benchmark: its name, what it does in words, and the function that adds its rows.
type Part = (&'static str, &'static str, fn(&Bed, &mut Vec<Target>) -> Result<(), Failed>);

const PARTS: [Part; 6] = [
    ("tr2u", "a byte a call: bare, default, exact, ptrace, and what the fix saves", tr2u::rows),
    ("startup", "start-up", startup::rows),
    ("counts", "counts against strace -c", counts::rows),
    ("rivals", "strace, perf trace, bpftrace", rivals::rows),
    ("ordinary", "make and git log", ordinary::rows),
    ("attach", "attach and detach", attach::rows),
];

fn say(what: &str) {
    eprintln!("bench-trace: {what}");
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
    let name = if bed.quick {
        "trace-quick"
    } else if chosen.is_empty() {
        "trace"
    } else {
        "trace-part"
    };
    targets::finish(name, &rows)?;
    say(&format!("took {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}
