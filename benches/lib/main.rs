//! `make bench-lib`: libweir beside glibc's stdio, musl's, sfio, Rust's std, Go's bufio and loops written by
//! hand. Arguments choose groups: `cargo bench -p weir-benches --bench lib -- bytes lines`.
//!
//! How it measures:
//! * A sample is one process that does one job and says itself what the job took, so that starting it does
//!   not count. Samples are interleaved: each round runs every contender once, in a shuffled order. A figure
//!   is the median of the ratios within the rounds, with a 95 % bootstrap interval.
//! * The kernel's split of CPU time into user and system is sampled at its ticks (every 4 ms on many
//!   machines), too coarse for a ratio of 1.1. User time is therefore the exact CPU time of the process less
//!   that of a loop of bare read(2) and write(2) of the same sizes, measured in the same rounds. What
//!   getrusage(2) says stands beside it in the table of figures.
//! * Input: 32 MiB of log lines, 80 characters and a newline, on tmpfs (/dev/shm if it has the room, else the
//!   target directory) and in memory since it was written; 8 MiB of them for locked streams, which take long.
//!   Long enough that opening the files is nothing, and short enough for rounds of about a second: what
//!   disturbs the machine then disturbs all of a round.
//! * Output: for user and CPU time /dev/null, as neither the allocation of pages nor the copy into them is the
//!   library's. For elapsed time of lines a new file on the same tmpfs, as a program has it; of large calls,
//!   tail and tr a file whose pages are there, so that the cost of new ones does not hide a difference.
//! * Everybody has its own default buffer; the hand-written loops have libweir's, memchr has 64 KiB. All C is
//!   compiled with -O2, Rust as cargo bench does.
//! * A loop of a few instructions takes half as long again where it lies badly in a line of the cache, whoever wrote
//!   it. So the C programs are there with their code at four places, and the rounds go through them.
//! * Everyone's output is compared with what it must be before anything is measured.

#[path = "../targets/mod.rs"]
mod targets;

mod commit;
mod contender;
mod data;
mod figures;
mod jobs;
mod judge;
mod rounds;
mod rust_std;
mod whole;

use std::path::PathBuf;
use std::time::Instant;

use targets::Target;

type BoxError = Box<dyn std::error::Error>;

/// What is collected for the end.
#[derive(Default)]
struct Report {
    targets: Vec<Target>,
    figures: Vec<figures::Figures>,
}

/// Cargo's target directory: its `tmp` is what it tells benchmarks.
fn target_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().map(PathBuf::from).unwrap_or_default()
}

fn say(what: &str) {
    eprintln!("bench-lib: {what}");
}

fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == contender::CHILD_ARGUMENT) {
        return rust_std::child(&arguments[1..]);
    }
    let chosen: Vec<&str> = arguments.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    let wanted = |group: &str| chosen.is_empty() || chosen.contains(&group);
    let started = Instant::now();
    let mut report = Report::default();
    let data = data::Data::make()?;
    say(&format!("input and output in {}", data.place_name()));
    for group in jobs::groups(&data)?.into_iter().filter(|group| wanted(group.name)) {
        say(group.title);
        let taken = rounds::run(&group, &data)?;
        report.targets.extend(judge::rows(&group, &taken));
        report.figures.extend(figures::of(&group, &taken));
    }
    if wanted("whole") {
        say("tail and tr against GNU's: whole programs");
        whole::run(&data, &mut report.targets)?;
    }
    if wanted("commit") {
        say("16 threads that sync every record");
        commit::run(&mut report)?;
    }
    figures::print(&report.figures)?;
    // A part is not the report: it must not be taken for it.
    targets::finish(if chosen.is_empty() { "lib" } else { "lib-part" }, &report.targets)?;
    say(&format!("took {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}
