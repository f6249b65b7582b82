//! `make bench-copy`: time and CPU time of `weir copy`, beside cp, dd, cat, rsync, mbuffer, xcp and cpz, on ext4, xfs and btrfs in
//! loop images, and tmpfs. Arguments choose parts: `cargo bench -p weir-benches --bench copy -- tree`.
//!
//! * A sample is one whole process, from its start to its exit. Compared jobs are interleaved in rounds of rotating order; a
//!   figure is the median of the ratios within the rounds, with a 95 % bootstrap interval.
//! * Sizes are a quarter of the (256 MiB, 5,000 files, 2.5 GiB with 1 % data), so that four file systems fit in memory.
//! * The noise floor is a second job of weir itself: where its interval is wider than the difference, the row says so.
//! * `WEIR_BENCH_QUICK=1` is a trial of the benchmark itself: few rounds, little data, its own JSON.

#[path = "../frame/mod.rs"]
mod frame;
#[path = "../targets/mod.rs"]
mod targets;

mod cells;
mod job;
mod single;

use frame::parts::{self, Part};
use frame::{BoxError, bench_dir, figure};

const PARTS: [Part; 5] = [
    ("file", "one large file, warm and cold, and a sparse one, on each file system", cells::file_rows),
    ("tree", "5,000 files of 4 KiB on each file system", cells::tree_rows),
    ("sync", "a durable tree: beside cp and an fsync of each file", single::sync_rows),
    ("cache", "--cache drop: pages that stay, and dirty pages", single::cache_rows),
    ("start", "the start: a file of 6 bytes", single::start_rows),
];

fn main() -> Result<(), BoxError> {
    parts::run("copy", &PARTS, &[])
}
