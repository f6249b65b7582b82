//! The exercise dots: a sign of life that is seen while there is life.

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
            what: "COUNT dots and one newline come out: of 5, of 1, of none",
            see: "the loop's first and last round",
            test: output,
        },
        Requirement {
            id: "pace",
            what: "it waits SECONDS for each dot, also a part of a second",
            see: "nanosleep(2), usleep(3): sleep(3) knows whole seconds only; strtod(3), not atoi(3)",
            test: pace,
        },
        Requirement {
            id: "one-by-one",
            what: "each dot is out before the next: in a file, too",
            see: "fflush(3), setbuf(3); weir lab dots, weir lab stuck-output",
            test: one_by_one,
        },
        Requirement {
            id: "killed",
            what: "after a kill -9 the dots are there that had been written",
            see: "fflush(3) behind each dot; weir lab lost-at-kill",
            test: killed,
        },
        Requirement {
            id: "calls",
            what: "a dot is one write, and nothing else is written",
            see: "write(2); weir lab setvbuf-modes",
            test: calls,
        },
        expect::full_disk("fflush(3), fclose(3): what they return; weir lab full-disk", |dir| {
            dir.run(&["3", "0.01"]).out_is_full().done()?.failed("standard output is full").map(drop)
        }),
        Requirement {
            id: "usage",
            what: "a COUNT that is no number is refused, with a status that is not 0",
            see: "strtol(3): endptr tells what atoi(3) does not",
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

/// Three waits at the least, whether it waits before or behind a dot.
fn pace(dir: &CheckDirectory) -> Test {
    let ended = dir.run(&["4", "0.1"]).done()?.well()?;
    match ended.elapsed < Duration::from_millis(290) {
        true => wrong(format!("dots 4 0.1 was at its end after {:.2} s", ended.elapsed.as_secs_f64())),
        false => Ok(()),
    }
}

/// Of three waits of 0.15 s a busy machine may hide one.
fn one_by_one(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["5", "0.15"]).start()?;
    let path = dir.beside("out");
    let mut has = |dots: u64| {
        let came = running.until(AT_ONCE, || std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= dots));
        came.then(Instant::now)
    };
    let (Some(first), Some(fourth)) = (has(1), has(4)) else {
        return wrong("in a file 5 dots did not come in 2 s");
    };
    let between = fourth - first;
    match between < Duration::from_millis(200) {
        true => wrong(format!(
            "in a file the fourth dot was there {:.2} s after the first",
            between.as_secs_f64()
        )),
        false => Ok(()),
    }
}

fn killed(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["1000", "0.05"]).start()?;
    let path = dir.beside("out");
    let came = running.until(AT_ONCE, || std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= 3));
    running.kill();
    let left = std::fs::read(&path).unwrap_or_default();
    match came && left.iter().all(|&c| c == b'.') {
        true => Ok(()),
        false => {
            wrong(format!("killed after 2 s of a dot every 0.05 s: {} bytes are in the file", left.len()))
        }
    }
}

fn calls(dir: &CheckDirectory) -> Test {
    let flow = traced(dir, dir.run(&["5", "0.01"]))?.on("/out", CallDirection::Out);
    match (5..=6).contains(&flow.calls) {
        true => Ok(()),
        false => wrong(format!("dots 5 0.01 made {} writes; a dot each and the newline are 6", flow.calls)),
    }
}
