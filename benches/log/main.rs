//! `make bench-log`: throughput, CPU time and delay of `weir log`, compared with socat, nc, cat, s6-log and multilog. Arguments
//! choose parts: `cargo bench -p weir-benches --bench log -- pipe`.
//!
//! * A sample is one whole job: from the first byte until the log has all bytes. Compared jobs are interleaved in rounds of
//!   rotating order; a figure is the median of the ratios within the rounds, with a 95 % bootstrap interval.
//! * A rival that is not installed has a row that says so.
//! * `WEIR_BENCH_QUICK=1` is a trial of the benchmark itself: few rounds, little data, its own JSON.

#[path = "../frame/mod.rs"]
mod frame;
#[path = "../run/rounds.rs"]
mod rounds;
#[path = "../targets/mod.rs"]
mod targets;

mod collector;
mod connections;
mod pipe;
mod rotation;
mod sync;
mod writers;

use frame::parts::{self, Part};
use frame::{BoxError, bench_dir, figure};

const PARTS: [Part; 6] = [
    (
        "writers",
        "25 clients of socat and a stream socket: beside socat, nc and a sink that discards",
        writers::rows,
    ),
    ("pipe", "lines from a pipe: beside cat, s6-log, multilog and rsyslog", pipe::add_rows),
    ("sync", "16 senders with --sync record: beside one fdatasync per record", sync::rows),
    ("rotation", "rotation every 100 ms under load: the delay of records", rotation::rows),
    ("connections", "10,000 connections with 10 records a second each", connections::rows),
    ("idle", "an idle collector: wake-ups and memory", connections::idle_rows),
];

fn main() -> Result<(), BoxError> {
    parts::run("log", &PARTS, &[])
}
