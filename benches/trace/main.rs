//! `make bench-trace`: the overhead of `weir trace`, compared with strace, perf trace and bpftrace, and the accuracy of its
//! counts and predictions. Arguments choose parts: `cargo bench -p weir-benches --bench trace -- tr2u attach`.
//!
//! Method:
//! * A sample is one whole run, from the fork until the process can be reaped. Compared runs are interleaved in rounds of
//!   rotating order; a figure is the median of the ratios within the rounds, with a 95 % bootstrap interval.
//! * "After start-up" is the whole run minus `overhead.startup_s` of its JSON. It includes weir's own end: the judgement of
//!   the recording and the report.
//! * Files are in the target directory, also weir's cache of prices, which is measured once before the first round.
//! * `WEIR_BENCH_QUICK=1` is a trial of the benchmark itself: few rounds, little data, its own JSON.

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
use frame::{BoxError, bench_dir, figure, process};

const PARTS: [Part; 6] = [
    ("tr2u", "single-byte calls: bare, default, exact, ptrace, and the gain of the fix", tr2u::rows),
    ("startup", "start-up", startup::rows),
    ("counts", "counts against strace -c", counts::rows),
    ("rivals", "strace, perf trace, bpftrace", rivals::rows),
    ("ordinary", "make and git log", ordinary::rows),
    ("attach", "attach and detach", attach::rows),
];

const PROGRAMS: &[(&str, &str)] = &[("trace", "tr2u"), ("trace", "tr2b"), ("trace", "writer")];

fn main() -> Result<(), BoxError> {
    parts::run("trace", &PARTS, PROGRAMS)
}
