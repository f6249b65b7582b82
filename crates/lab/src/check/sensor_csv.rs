//! The exercise sensor_csv: readings in a file that survive a kill and a power cut.

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, AT_ONCE, same, shaped};
use super::{CheckFailure, Exercise, Requirement, Test, wrong};
use crate::Error;

pub(super) const EXERCISE: Exercise = Exercise {
    name: "sensor_csv",
    usage: "[-n COUNT] [-i SECONDS] SENSOR",
    about: "every SECONDS (5; 0.1 is possible) reads SENSOR, a file with thousandths of a degree such as \
            /sys/class/thermal/thermal_zone0/temp, and appends a line `2025-07-22T10:30:00,25.5` to temperatures.csv \
            in the working directory; ends after COUNT readings",
    requirements: &[
        Requirement {
            id: "lines",
            what: "each reading is a line with the time and the degrees with one decimal",
            see: "strftime(3): %Y-%m-%dT%H:%M:%S; printf(3): %.1f",
            test: whole_lines,
        },
        Requirement {
            id: "values",
            what: "thousandths become degrees: 25500, 7049, 100000, 0, -500, -12300",
            see: "integer division in C drops the remainder, and the sign of -500 / 1000",
            test: values,
        },
        Requirement {
            id: "fresh",
            what: "each reading is a new read of the sensor",
            see: "open(2), or pread(2) at 0: a stream at its end returns no more bytes; rewind(3)",
            test: fresh,
        },
        Requirement {
            id: "append",
            what: "the old contents of temperatures.csv stay",
            see: "fopen(3): \"a\"; open(2): O_APPEND",
            test: append,
        },
        Requirement {
            id: "torn",
            what: "after an incomplete last line, as a power cut leaves it, a new line begins",
            see: "lseek(2), pread(2) of the last byte; weir lab sensor-csv",
            test: torn,
        },
        Requirement {
            id: "at-once",
            what: "a reading is in the file before the wait for the next begins",
            see: "setbuf(3): _IOLBF, fflush(3); weir lab sensor-csv, weir lab stuck-output",
            test: at_once,
        },
        Requirement {
            id: "killed",
            what: "no reading is lost at kill -9",
            see: "weir lab sensor-csv, weir lab lost-at-kill",
            test: killed,
        },
        Requirement {
            id: "one-write",
            what: "a line is one write, so a power cut can damage only the last line",
            see: "write(2), fprintf(3) to a line buffered stream; weir lab append-writers",
            test: one_write,
        },
        Requirement {
            id: "emptied",
            what: "if another program truncates the file meanwhile, the next line is the first one",
            see: "open(2): O_APPEND; without it the offset stays and NULs fill the gap; weir lab writers-without-append",
            test: emptied,
        },
        Requirement {
            id: "gap",
            what: "a failed reading is skipped, and the next one is recorded",
            see: "open(2), read(2): return values; sensors fail sometimes",
            test: gap,
        },
        Requirement {
            id: "closed",
            what: "it closes its files: 40 readings need at most 12 descriptors",
            see: "fclose(3), close(2) of the sensor after each reading",
            test: closed,
        },
        Requirement {
            id: "missing",
            what: "a missing SENSOR is reported, with a status other than 0",
            see: "fopen(3) returns NULL; perror(3)",
            test: |dir| {
                dir.run(&["-n", "1", "-i", "0", "nowhere"]).done()?.failed("SENSOR does not exist").map(drop)
            },
        },
        expect::full_disk("fprintf(3), fflush(3), fclose(3): return values; weir lab full-disk", full_disk),
    ],
};

const CSV: &str = "temperatures.csv";
const SENSOR: &str = "sensor";

/// Returns the degrees of all lines. Fails if a line has another format.
fn degrees(csv: &[u8]) -> Result<Vec<String>, CheckFailure> {
    let text = String::from_utf8_lossy(csv);
    let of = |line: &str| {
        let (stamp, value) = line.split_once(',')?;
        shaped(stamp, "####-##-##T##:##:##").then(|| value.to_string())
    };
    let not_like = |line: &str| format!("not like 2025-07-22T10:30:00,25.5: {line:?}");
    let Some(text) = text.strip_suffix('\n') else { return wrong(not_like(&text)) };
    text.split('\n').map(|line| of(line).map_or_else(|| wrong(not_like(line)), Ok)).collect()
}

fn read_once(dir: &CheckDirectory, thousandths: &str) -> Result<Vec<String>, CheckFailure> {
    dir.put(SENSOR, format!("{thousandths}\n"))?;
    dir.run(&["-n", "1", "-i", "0", SENSOR]).done()?.well()?;
    degrees(&dir.get(CSV)?)
}

fn whole_lines(dir: &CheckDirectory) -> Test {
    dir.put(SENSOR, "25500\n")?;
    dir.run(&["-n", "3", "-i", "0.01", SENSOR]).done()?.well()?;
    same("three readings of 25500", b"25.5 25.5 25.5", degrees(&dir.get(CSV)?)?.join(" ").as_bytes())
}

fn values(dir: &CheckDirectory) -> Test {
    for (thousandths, wanted) in [
        ("25500", "25.5"),
        ("7049", "7.0"),
        ("100000", "100.0"),
        ("0", "0.0"),
        ("-500", "-0.5"),
        ("-12300", "-12.3"),
    ] {
        let got = read_once(dir, thousandths)?.pop().unwrap_or_default();
        same(thousandths, wanted.as_bytes(), got.as_bytes())?;
    }
    Ok(())
}

/// Returns the number of complete lines now.
fn count(dir: &CheckDirectory) -> Result<usize, Error> {
    Ok(dir.get_if_made(CSV)?.iter().filter(|&&c| c == b'\n').count())
}

/// Returns whether the file has so many lines, or cannot be read, which the next read then reports.
fn has_lines(dir: &CheckDirectory, least: usize) -> bool {
    count(dir).map_or(true, |lines| lines >= least)
}

/// Runs the solution for two readings and calls `action` after the first, then `judge` with the contents of the file. On a busy machine
/// the action can miss the wait between the readings, so a wrong outcome counts only if it comes with longer waits too.
fn after_first(dir: &CheckDirectory, action: impl Fn() -> Test, judge: impl Fn(&[u8]) -> Test) -> Test {
    let waits = [("0.3", AT_ONCE / 8), ("1", AT_ONCE / 8), ("3", AT_ONCE / 2)];
    first_right(dir, waits, |(interval, patience)| {
        dir.put(SENSOR, "25500\n")?;
        let mut running = dir.run(&["-n", "2", "-i", interval, SENSOR]).start()?;
        // A program that buffers its lines shows none; then the action runs during the wait.
        running.until(patience, || has_lines(dir, 1));
        action()?;
        running.end(AT_ONCE * 3)?;
        Ok(judge(&dir.get(CSV)?))
    })
}

/// Makes attempts without an old file until one has a right outcome. Returns the outcome of the last attempt, or the error of one that
/// cannot be judged.
fn first_right<T>(
    dir: &CheckDirectory,
    attempts: impl IntoIterator<Item = T>,
    attempt: impl Fn(T) -> Result<Test, CheckFailure>,
) -> Test {
    let mut outcome = Ok(());
    for one in attempts {
        dir.remove(CSV);
        outcome = attempt(one)?;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn fresh(dir: &CheckDirectory) -> Test {
    let judge = |csv: &[u8]| same("25500, then 31000", b"25.5 31.0", degrees(csv)?.join(" ").as_bytes());
    after_first(dir, || Ok(dir.put(SENSOR, "31000\n")?), judge)
}

fn append(dir: &CheckDirectory) -> Test {
    dir.put(CSV, "2025-07-22T10:30:00,19.5\n")?;
    same("after a line of yesterday", b"19.5 25.5", read_once(dir, "25500")?.join(" ").as_bytes())
}

fn torn(dir: &CheckDirectory) -> Test {
    dir.put(CSV, "2025-07-22T10:30:00,19.5\n2025-07-2")?;
    dir.put(SENSOR, "25500\n")?;
    dir.run(&["-n", "1", "-i", "0", SENSOR]).done()?.well()?;
    let csv = dir.get(CSV)?;
    let last = csv.strip_suffix(b"\n").unwrap_or(&csv).split(|&c| c == b'\n').next_back().unwrap_or_default();
    match degrees(&[last, b"\n"].concat()) {
        Ok(_) => Ok(()),
        Err(_) => wrong(format!("the first new line became {:?}", String::from_utf8_lossy(last))),
    }
}

fn at_once(dir: &CheckDirectory) -> Test {
    dir.put(SENSOR, "25500\n")?;
    let mut running = dir.run(&["-n", "2", "-i", "30", SENSOR]).start()?;
    match running.until(AT_ONCE, || has_lines(dir, 1)) && count(dir)? > 0 {
        true => Ok(()),
        false => {
            wrong(format!("-i 30: after 2 s temperatures.csv has {} bytes", dir.get_if_made(CSV)?.len()))
        }
    }
}

fn killed(dir: &CheckDirectory) -> Test {
    dir.put(SENSOR, "25500\n")?;
    let mut running = dir.run(&["-n", "1000", "-i", "0.05", SENSOR]).start()?;
    let came = running.until(AT_ONCE, || has_lines(dir, 3));
    running.kill();
    match came {
        true => degrees(&dir.get(CSV)?).map(drop),
        false => {
            let lines = count(dir)?;
            wrong(format!("killed after 2 s with a reading every 0.05 s: the file has {lines} lines"))
        }
    }
}

fn one_write(dir: &CheckDirectory) -> Test {
    dir.put(SENSOR, "25500\n")?;
    let calls = traced(dir, dir.run(&["-n", "3", "-i", "0.01", SENSOR]))?.on(CSV, CallDirection::Out).calls;
    match calls {
        3 => Ok(()),
        _ => wrong(format!("3 readings made {calls} writes")),
    }
}

fn emptied(dir: &CheckDirectory) -> Test {
    let judge = |csv: &[u8]| match csv.contains(&0) {
        true => wrong("after the truncation there are NULs before the line"),
        false => degrees(csv).map(drop),
    };
    after_first(dir, || Ok(dir.put(CSV, "")?), judge)
}

/// On a busy machine a reading can miss the time in which the sensor is missing, so a wrong outcome counts only if it comes each time.
fn gap(dir: &CheckDirectory) -> Test {
    const ATTEMPTS: u32 = 3;
    first_right(dir, 0..ATTEMPTS, |_| Ok(gap_once(dir)))
}

fn gap_once(dir: &CheckDirectory) -> Test {
    let (sensor, away) = (dir.path().join(SENSOR), dir.path().join("away"));
    dir.put(SENSOR, "25500\n")?;
    let moved = |from: &std::path::Path, to: &std::path::Path| {
        std::fs::rename(from, to).map_err(|source| Error::File { path: to.into(), call: "rename", source })
    };
    let mut running = dir.run(&["-n", "6", "-i", "0.2", SENSOR]).start()?;
    running.until(AT_ONCE / 4, || has_lines(dir, 1));
    moved(&sensor, &away)?;
    std::thread::sleep(std::time::Duration::from_millis(300));
    moved(&away, &sensor)?;
    running.end(AT_ONCE * 2)?;
    let lines = degrees(&dir.get(CSV)?)?;
    if lines.len() >= 6 {
        return wrong("the sensor was missing for 0.3 s, but there is a line for each 0.2 s");
    }
    match lines.len() >= 3 && lines.iter().all(|value| value == "25.5") {
        true => Ok(()),
        false => wrong(format!(
            "the sensor was missing for 0.3 s of 1.2 s; the file has {} lines: {}",
            lines.len(),
            lines.join(" ")
        )),
    }
}

fn closed(dir: &CheckDirectory) -> Test {
    dir.put(SENSOR, "25500\n")?;
    dir.run(&["-n", "40", "-i", "0", SENSOR]).descriptors(12).done()?.well()?;
    match count(dir)? {
        40 => Ok(()),
        lines => wrong(format!("40 readings with 12 descriptors left {lines} lines")),
    }
}

fn full_disk(dir: &CheckDirectory) -> Test {
    dir.link(CSV, "/dev/full")?;
    dir.put(SENSOR, "25500\n")?;
    dir.run(&["-n", "1", "-i", "0", SENSOR]).done()?.failed("temperatures.csv is on a full disk").map(drop)
}
