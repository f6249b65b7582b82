//! `make bench-trace`: what `weir trace` costs the program that it watches, beside strace, perf trace and
//! bpftrace, and whether its counts and its predictions are right. Arguments choose parts:
//! `cargo bench -p weir-benches --bench trace -- tr2u attach`.
//!
//! How it measures:
//! * A sample is one whole run, from the fork to the moment when the process can be reaped. The runs that are
//!   compared are interleaved in rounds whose order turns; a figure is the median of the ratios within the
//!   rounds with a 95 % bootstrap interval.
//! * "After start-up" is the whole run less `overhead.startup_s` of its own JSON: what is left holds all else,
//!   also weir's own end, in which it judges and writes.
//! * Files lie in the target directory; what weir keeps of prices goes there too, and is measured once before.
//! * `WEIR_BENCH_QUICK=1` is for trying the benchmark itself: few rounds, little data, its own JSON.

#[path = "../frame/mod.rs"]
mod frame;
#[path = "../targets/mod.rs"]
mod targets;

mod attach;
mod counts;
mod input;
mod ordinary;
mod rivals;
mod startup;
mod tr2u;
mod traced;

use frame::parts::{self, Part};
use frame::{Failed, bed, figure, process};

const PARTS: [Part; 6] = [
    ("tr2u", "a byte a call: bare, default, exact, ptrace, and what the fix saves", tr2u::rows),
    ("startup", "start-up", startup::rows),
    ("counts", "counts against strace -c", counts::rows),
    ("rivals", "strace, perf trace, bpftrace", rivals::rows),
    ("ordinary", "make and git log", ordinary::rows),
    ("attach", "attach and detach", attach::rows),
];

const PROGRAMS: &[(&str, &str)] = &[("trace", "tr2u"), ("trace", "tr2b"), ("trace", "writer")];

fn main() -> Result<(), Failed> {
    parts::run("trace", &PARTS, PROGRAMS)
}
