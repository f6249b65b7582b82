//! The exercise dots: progress dots that are visible while the program runs.

use std::time::{Duration, Instant};

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, AT_ONCE, same};
use super::{Exercise, Requirement, Test, wrong};

pub(super) const EXERCISE: Exercise = Exercise {
    name: "dots",
    usage: "[COUNT [SECONDS]]",
    about: "writes COUNT dots (10), one every SECONDS (1; 0.1 is possible), then a newline",
    requirements: &[
        Requirement {
            id: "output",
            what: "it writes COUNT dots and one newline: for 5, 1 and 0",
            see: "the first and last iteration of the loop",
            test: output,
        },
        Requirement {
            id: "pace",
            what: "it waits SECONDS for each dot, also a fraction of a second",
            see: "nanosleep(2), usleep(3): sleep(3) takes whole seconds only; strtod(3), not atoi(3)",
            test: pace,
        },
        Requirement {
            id: "one-by-one",
            what: "each dot is written before the wait for the next one, also to a file",
            see: "fflush(3), setbuf(3); weir lab dots, weir lab stuck-output",
            test: one_by_one,
        },
        Requirement {
            id: "killed",
            what: "after kill -9 the earlier dots are in the file",
            see: "fflush(3) after each dot; weir lab lost-at-kill",
            test: killed,
        },
        Requirement {
            id: "calls",
            what: "each dot is one write; the newline is one more at most",
            see: "write(2); weir lab setvbuf-modes",
            test: calls,
        },
        expect::full_disk("fflush(3), fclose(3): return values; weir lab full-disk", |dir| {
            dir.run(&["3", "0.01"]).out_is_full().done()?.failed("standard output is full").map(drop)
        }),
        Requirement {
            id: "usage",
            what: "a COUNT that is not a number is an error, with a status other than 0",
            see: "strtol(3): endptr shows the error that atoi(3) hides",
            test: |dir| dir.run(&["many"]).done()?.failed("dots many").map(drop),
        },
    ],
};

fn output(dir: &CheckDirectory) -> Test {
    for (count, wanted) in [("5", ".....\n"), ("1", ".\n"), ("0", "\n")] {
        let ended = dir.run(&[count, "0.01"]).done()?.well()?;
        same(&format!("dots {count} 0.01"), wanted.as_bytes(), &ended.out)?;
    }
    Ok(())
}

/// Four dots need at least three waits, whether the program waits before or after a dot.
fn pace(dir: &CheckDirectory) -> Test {
    let ended = dir.run(&["4", "0.1"]).done()?.well()?;
    match ended.elapsed < Duration::from_millis(290) {
        true => wrong(format!("dots 4 0.1 ended after {:.2} s", ended.elapsed.as_secs_f64())),
        false => Ok(()),
    }
}

/// On a busy machine the test can see the first dot late: 0.2 s of the three waits of 0.15 s are enough.
fn one_by_one(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["5", "0.15"]).start()?;
    let path = dir.beside("out");
    let mut has = |dots: u64| {
        let came = running.until(AT_ONCE, || std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= dots));
        came.then(Instant::now)
    };
    let (Some(first), Some(fourth)) = (has(1), has(4)) else {
        return wrong("in a file, the first or the fourth of 5 dots was not written within 2 s");
    };
    let between = fourth - first;
    match between < Duration::from_millis(200) {
        true => {
            wrong(format!("in a file, the fourth dot came {:.2} s after the first", between.as_secs_f64()))
        }
        false => Ok(()),
    }
}

fn killed(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["1000", "0.05"]).start()?;
    let path = dir.beside("out");
    let came = running.until(AT_ONCE, || std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= 3));
    running.kill();
    let left = std::fs::read(&path).unwrap_or_default();
    if !came {
        return wrong(format!(
            "2 s after the start, with a dot every 0.05 s, the file has {} bytes",
            left.len()
        ));
    }
    match left.iter().all(|&c| c == b'.') {
        true => Ok(()),
        false => wrong("after kill -9 the file has other bytes than dots"),
    }
}

fn calls(dir: &CheckDirectory) -> Test {
    let calls = traced(dir, dir.run(&["5", "0.01"]))?.on("/out", CallDirection::Out).calls;
    match (5..=6).contains(&calls) {
        true => Ok(()),
        false => wrong(format!("dots 5 0.01 made {calls} writes; 5 dots and the newline need 5 or 6")),
    }
}
