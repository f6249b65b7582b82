//! `make bench-run`: the gain and the overhead of `weir run`, compared with stdbuf and the bare program. Arguments choose
//! parts: `cargo bench -p weir-benches --bench run -- coalesce bulk`.
//!
//! * A sample is one whole run, from the fork until the process can be reaped. Compared runs are interleaved in rounds of
//!   rotating order; a figure is the median of the ratios within the rounds, with a 95 % bootstrap interval.
//! * `WEIR_BENCH_QUICK=1` is a trial of the benchmark itself: few rounds, little data, its own JSON.

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
use frame::{BoxError, bench_dir, figure, process};

const PARTS: [Part; 6] = [
    ("coalesce", "single-byte calls: bare, gathered, and the fixed program", coalesce::rows),
    ("bulk", "short lines in bulk to a pipe: bare, --max-delay, stdbuf -oL", bulk::rows),
    ("slow", "ten lines a second: when each arrives", slow::rows),
    ("start", "the cost of a start, compared with stdbuf", start::rows),
    ("rescue", "the cost of --rescue for a compiler and tr2b", rescue::rows),
    ("putc", "putc_unlocked at full speed with --max-delay 1ms", putc::rows),
];

const PROGRAMS: &[(&str, &str)] =
    &[("trace", "tr2u"), ("trace", "tr2b"), ("run", "lines"), ("run", "slow"), ("run", "putc")];

fn main() -> Result<(), BoxError> {
    parts::run("run", &PARTS, PROGRAMS)
}
