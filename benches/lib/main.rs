//! `make bench-lib`: libweir compared with the stdio of glibc and musl, sfio, Rust's std, Go's bufio and hand-written
//! loops. Arguments choose groups: `cargo bench -p weir-benches --bench lib -- bytes lines`.
//!
//! Method:
//! * A sample is a process that does one job and reports the job's times, without its own start. Samples are interleaved:
//!   each round runs every contender once, in a shuffled order. A figure is the median of the ratios within the rounds,
//!   with a 95 % bootstrap interval.
//! * The kernel splits CPU time into user and system time at its ticks (every 4 ms on many machines), too coarse for a
//!   ratio of 1.1. User time is therefore the exact CPU time of the process minus that of a loop of bare read(2) and
//!   write(2) calls of the same sizes, measured in the same rounds. The table of figures also has the times of
//!   getrusage(2).
//! * Input: 32 MiB of log lines of 80 characters, in memory on tmpfs (/dev/shm if it is large enough, otherwise the target
//!   directory); 8 MiB for locked streams, which are slow. With this size opening the files does not matter, and a round
//!   takes about a second, so that a disturbance affects all samples of a round.
//! * Output: /dev/null for user and CPU time, because the library neither allocates nor fills the pages of a file. A new
//!   file on the same tmpfs for the elapsed time of lines, as in a real program. An existing file for large calls, tail and
//!   tr, so that the cost of new pages does not hide a difference.
//! * Every contender has its own default buffer; the hand-written loops have libweir's, the memchr loop 64 KiB. All C is
//!   compiled with -O2, Rust with the flags of cargo bench.
//! * A loop of a few instructions can take 1.5 times as long if it is badly aligned in a cache line. The C programs are
//!   therefore built with four alignments of their code, and the rounds rotate through them.
//! * Every output is checked before the measurement.

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

/// The results of all groups so far.
#[derive(Default)]
struct Report {
    targets: Vec<Target>,
    figures: Vec<figures::ContenderFigures>,
}

/// Returns cargo's target directory, the parent of CARGO_TARGET_TMPDIR.
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
        say("whole programs: tail and tr, compared with GNU's");
        whole::run(&data, &mut report.targets)?;
    }
    if wanted("commit") {
        say("16 threads that sync every record");
        commit::run(&mut report)?;
    }
    figures::print(&report.figures)?;
    // The table of a part has another file name, so that it does not replace the report.
    targets::finish(if chosen.is_empty() { "lib" } else { "lib-part" }, &report.targets)?;
    say(&format!("took {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}
