//! `make bench-run`: what `weir run` saves and costs, beside stdbuf and the program as it is. Arguments choose parts:
//! `cargo bench -p weir-benches --bench run -- coalesce delay`.
//!
//! * A sample is one whole run, from the fork to the moment when the process can be reaped. Runs that are compared are
//!   interleaved in rounds whose order turns; a figure is the median of the ratios within the rounds with a 95 %
//!   bootstrap interval.
//! * `WEIR_BENCH_QUICK=1` is for trying the benchmark itself: few rounds, little data, its own JSON.

#[path = "../frame/mod.rs"]
mod frame;
#[path = "../targets/mod.rs"]
mod targets;

mod bulk;
mod coalesce;
mod command;
mod putc;
mod rescue;
mod rounds;
mod slow;
mod start;

use frame::parts::{self, Part};
use frame::{Failed, bed, figure, process};

const PARTS: [Part; 6] = [
    ("coalesce", "a byte a call: bare, gathered, and the fixed program", coalesce::rows),
    ("bulk", "short lines in bulk to a pipe: bare, --max-delay, stdbuf -oL", bulk::rows),
    ("slow", "ten lines a second: when each arrives", slow::rows),
    ("start", "what a start costs, beside stdbuf", start::rows),
    ("rescue", "what --rescue costs a compiler and tr2b", rescue::rows),
    ("putc", "putc_unlocked at full speed with --max-delay 1ms", putc::rows),
];

const PROGRAMS: &[(&str, &str)] =
    &[("trace", "tr2u"), ("trace", "tr2b"), ("run", "lines"), ("run", "slow"), ("run", "putc")];

fn main() -> Result<(), Failed> {
    parts::run("run", &PARTS, PROGRAMS)
}
