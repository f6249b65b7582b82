//! The exercise log_message: a log that is complete also after a kill.

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, AT_ONCE, same, shaped};
use super::{Exercise, Requirement, Test, wrong};
use crate::Error;

pub(super) const EXERCISE: Exercise = Exercise {
    name: "log_message",
    usage: "[-l] [-w SECONDS] MESSAGE…",
    about: "appends each MESSAGE as a line `[2025-07-22 10:30:00] MESSAGE` to app.log in the working directory; -l: \
            writes line by line (may also be the default); -w: waits SECONDS after each, may be a fraction",
    requirements: &[
        Requirement {
            id: "lines",
            what: "each message is a line that begins with the time",
            see: "strftime(3), fprintf(3)",
            test: whole_lines,
        },
        Requirement {
            id: "percent",
            what: "a message with % is written unchanged",
            see: "fprintf(3): the format is \"%s\", never the message",
            test: percent,
        },
        Requirement {
            id: "long",
            what: "a message of 5000 bytes is complete",
            see: "sprintf(3) does not know the size of its buffer; snprintf(3) truncates; fprintf(3) needs no buffer",
            test: long,
        },
        Requirement {
            id: "append",
            what: "the old contents of app.log stay",
            see: "fopen(3): \"a\"; open(2): O_APPEND",
            test: append,
        },
        Requirement {
            id: "at-once",
            what: "with -l a message is in app.log before its wait begins",
            see: "setbuf(3): _IOLBF; weir lab log-message, weir lab stuck-output",
            test: at_once,
        },
        Requirement {
            id: "killed",
            what: "with -l no logged message is lost at kill -9",
            see: "weir lab log-message, weir lab lost-at-kill",
            test: killed,
        },
        Requirement {
            id: "one-write",
            what: "with -l a line is one write, so that lines of several programs do not mix",
            see: "write(2), fprintf(3) to a line buffered stream; weir lab append-writers",
            test: one_write,
        },
        Requirement {
            id: "shared",
            what: "lines that another program appends meanwhile are not overwritten",
            see: "open(2): O_APPEND, not a seek to the end; weir lab writers-without-append",
            test: shared,
        },
        Requirement {
            id: "closed",
            what: "it closes its files: 40 messages need at most 12 descriptors",
            see: "fclose(3), close(2) of each file that a message opens",
            test: closed,
        },
        Requirement {
            id: "unwritable",
            what: "an app.log that cannot be opened is reported, with a status other than 0",
            see: "fopen(3) returns NULL; perror(3)",
            test: unwritable,
        },
        expect::full_disk("fprintf(3), fflush(3), fclose(3): return values; weir lab full-disk", full_disk),
        Requirement {
            id: "usage",
            what: "without a message it prints its usage, with a status other than 0",
            see: "exit(3): status 2 is usual",
            test: |dir| dir.run(&[]).done()?.failed("without arguments").map(drop),
        },
    ],
};

const LOG: &str = "app.log";

/// Returns the messages in a log. Fails if a line is not a message with a time.
fn messages(log: &[u8]) -> Result<Vec<String>, super::CheckFailure> {
    let text = String::from_utf8_lossy(log);
    let Some(text) = text.strip_suffix('\n') else {
        return wrong(format!("the log does not end with a newline: {:?}", start_of(&text)));
    };
    let message = |line: &str| {
        let (stamp, message) = line.split_once("] ")?;
        let shapes = ["[####-##-## ##:##:##", "[####-##-##T##:##:##"];
        shapes.iter().any(|shape| shaped(stamp, shape)).then(|| message.to_string())
    };
    let wanted = "[2025-07-22 10:30:00] MESSAGE";
    text.split('\n')
        .map(|line| {
            message(line).map_or_else(|| wrong(format!("not like {wanted}: {:?}", start_of(line))), Ok)
        })
        .collect()
}

fn start_of(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Logs messages and compares the log with them.
fn logs(dir: &CheckDirectory, of: &str, wanted: &[&str]) -> Test {
    dir.run(wanted).done()?.well()?;
    let got = messages(&dir.get(LOG)?)?;
    same(of, wanted.join("\n").as_bytes(), got.join("\n").as_bytes())
}

fn whole_lines(dir: &CheckDirectory) -> Test {
    logs(dir, "three messages", &["the system is started", "two", "a third one"])
}

fn percent(dir: &CheckDirectory) -> Test {
    logs(dir, "messages with %", &["the disk is 100% full", "%s %d %5$s %%", "done"])
}

fn long(dir: &CheckDirectory) -> Test {
    let long = "0123456789".repeat(500);
    logs(dir, "a message of 5000 bytes", &["before", &long, "after"])
}

fn append(dir: &CheckDirectory) -> Test {
    dir.put(LOG, "[2025-07-22 10:30:00] of yesterday\n")?;
    dir.run(&["of today"]).done()?.well()?;
    same("a log of yesterday", b"of yesterday\nof today", messages(&dir.get(LOG)?)?.join("\n").as_bytes())
}

fn has(dir: &CheckDirectory, message: &str) -> Result<bool, Error> {
    let (log, line) = (dir.get_if_made(LOG)?, format!("{message}\n"));
    Ok(log.windows(line.len()).any(|window| window == line.as_bytes()))
}

fn at_once(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["-l", "-w", "30", "first", "second"]).start()?;
    // An error ends the wait and is returned by the next read.
    let came = running.until(AT_ONCE, || has(dir, "first").unwrap_or(true));
    match came && has(dir, "first")? {
        true if has(dir, "second")? => {
            wrong("-w 30: the second message was logged before the end of the wait")
        }
        true => Ok(()),
        false => {
            let bytes = dir.get_if_made(LOG)?.len();
            wrong(format!("2 s after the start of a wait of 30 s app.log has {bytes} bytes"))
        }
    }
}

fn killed(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["-l", "-w", "0.2", "first", "second", "third", "last"]).start()?;
    let came = running.until(AT_ONCE, || has(dir, "second").unwrap_or(true));
    let ended = has(dir, "last")?;
    running.kill();
    match came && !ended && has(dir, "first")? && has(dir, "second")? {
        true => Ok(()),
        false if ended => wrong("all messages were written together, after the last wait of -w 0.2"),
        false => wrong(format!("killed after 2 s: app.log has {} bytes", dir.get_if_made(LOG)?.len())),
    }
}

fn one_write(dir: &CheckDirectory) -> Test {
    let calls = traced(dir, dir.run(&["-l", "first", "second", "third"]))?.on(LOG, CallDirection::Out).calls;
    match calls {
        3 => Ok(()),
        _ => wrong(format!("3 messages made {calls} writes")),
    }
}

/// Appends a line where a program without O_APPEND writes next.
fn shared(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["-l", "-w", "0.3", "first", "second"]).start()?;
    running.until(AT_ONCE, || has(dir, "first").unwrap_or(true));
    let other = std::fs::File::options().append(true).create(true).open(dir.path().join(LOG));
    let written =
        other.and_then(|mut log| std::io::Write::write_all(&mut log, b"[2025-07-22 10:30:00] of another\n"));
    written.map_err(|source| crate::Error::File { path: LOG.into(), call: "write", source })?;
    running.end(AT_ONCE * 2)?.well()?;
    match has(dir, "of another")? && has(dir, "second")? {
        true => Ok(()),
        false => wrong("a line that another program appended between two messages is missing"),
    }
}

fn closed(dir: &CheckDirectory) -> Test {
    let many: Vec<String> = (0..40).map(|number| format!("message {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    dir.run(&many).descriptors(12).done()?.well()?;
    same("40 messages", many.join("\n").as_bytes(), messages(&dir.get(LOG)?)?.join("\n").as_bytes())
}

fn unwritable(dir: &CheckDirectory) -> Test {
    dir.directory(LOG)?;
    dir.run(&["message"]).done()?.failed("app.log is a directory").map(drop)
}

fn full_disk(dir: &CheckDirectory) -> Test {
    dir.link(LOG, "/dev/full")?;
    dir.run(&["message"]).done()?.failed("app.log is on a full disk").map(drop)
}
