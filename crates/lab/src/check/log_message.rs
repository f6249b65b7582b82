//! The exercise log_message: a log that tells what happened, also when what happened is a kill.

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, AT_ONCE, same, shaped};
use super::{Exercise, Requirement, Test, wrong};

pub(super) const EXERCISE: Exercise = Exercise {
    name: "log_message",
    usage: "[-l] [-w SECONDS] MESSAGE…",
    about: "appends each MESSAGE as a line `[2025-07-22 10:30:00] MESSAGE` to app.log in the working directory; -l: \
            line by line (it may always be so); -w: waits so long behind each, perhaps a part of a second",
    requirements: &[
        Requirement {
            id: "lines",
            what: "each message is a line with its time in front",
            see: "strftime(3), fprintf(3)",
            test: whole_lines,
        },
        Requirement {
            id: "percent",
            what: "a message with % in it is written as it is",
            see: "fprintf(3): the format is \"%s\", never the message",
            test: percent,
        },
        Requirement {
            id: "long",
            what: "a message of 5000 bytes comes whole",
            see: "sprintf(3) does not know how large its target is; snprintf(3) cuts; fprintf(3) needs none",
            test: long,
        },
        Requirement {
            id: "append",
            what: "what is in app.log stays",
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
            what: "with -l a kill -9 takes no message that was logged",
            see: "weir lab log-message, weir lab lost-at-kill",
            test: killed,
        },
        Requirement {
            id: "one-write",
            what: "with -l a line is one write, so that lines of several programs stay whole",
            see: "write(2), fprintf(3) into a stream in line mode; weir lab append-writers",
            test: one_write,
        },
        Requirement {
            id: "shared",
            what: "what another program appends meanwhile is not overwritten",
            see: "open(2): O_APPEND, not a seek to the end; weir lab writers-without-append",
            test: shared,
        },
        Requirement {
            id: "closed",
            what: "nothing is left open: 40 messages need no more than 12 descriptors",
            see: "fclose(3), close(2) for whatever each message opens",
            test: closed,
        },
        Requirement {
            id: "unwritable",
            what: "an app.log that cannot be opened is told, with a status that is not 0",
            see: "fopen(3) returns NULL; perror(3)",
            test: unwritable,
        },
        expect::full_disk(
            "fprintf(3), fflush(3), fclose(3): what they return; weir lab full-disk",
            full_disk,
        ),
        Requirement {
            id: "usage",
            what: "without a message it says how it is used, with a status that is not 0",
            see: "exit(3): status 2 is usual",
            test: |dir| dir.run(&[]).done()?.failed("without arguments").map(drop),
        },
    ],
};

const LOG: &str = "app.log";

/// The messages in a log, if every line is one.
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

/// Logs them, and finds them in the log.
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
    logs(dir, "a message of 5000 bytes", &["before", &long, "behind"])
}

fn append(dir: &CheckDirectory) -> Test {
    dir.put(LOG, "[2025-07-22 10:30:00] of yesterday\n")?;
    dir.run(&["of today"]).done()?.well()?;
    same("a log of yesterday", b"of yesterday\nof today", messages(&dir.get(LOG)?)?.join("\n").as_bytes())
}

fn has(dir: &CheckDirectory, message: &str) -> bool {
    dir.now(LOG).windows(message.len() + 1).any(|window| window == format!("{message}\n").as_bytes())
}

fn at_once(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["-l", "-w", "30", "first", "second"]).start()?;
    match running.until(AT_ONCE, || has(dir, "first")) {
        true if has(dir, "second") => wrong("-w 30: the second message is there before the wait was over"),
        true => Ok(()),
        false => {
            wrong(format!("2 s after the start of a wait of 30 s app.log has {} bytes", dir.now(LOG).len()))
        }
    }
}

fn killed(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["-l", "-w", "0.2", "first", "second", "third", "last"]).start()?;
    let came = running.until(AT_ONCE, || has(dir, "second"));
    let ended = has(dir, "last");
    running.kill();
    match came && !ended && has(dir, "first") && has(dir, "second") {
        true => Ok(()),
        false if ended => wrong("the messages came all together, when -w 0.2 was over for the last of them"),
        false => wrong(format!("killed after 2 s: app.log has {} bytes", dir.now(LOG).len())),
    }
}

fn one_write(dir: &CheckDirectory) -> Test {
    let calls = traced(dir, dir.run(&["-l", "first", "second", "third"]))?.on(LOG, CallDirection::Out).calls;
    match calls {
        3 => Ok(()),
        _ => wrong(format!("3 messages made {calls} writes")),
    }
}

/// What the other one appends is where a program that only knows its own offset writes next.
fn shared(dir: &CheckDirectory) -> Test {
    let mut running = dir.run(&["-l", "-w", "0.3", "first", "second"]).start()?;
    running.until(AT_ONCE, || has(dir, "first"));
    let other = std::fs::File::options().append(true).create(true).open(dir.path().join(LOG));
    let written =
        other.and_then(|mut log| std::io::Write::write_all(&mut log, b"[2025-07-22 10:30:00] of another\n"));
    written.map_err(|source| crate::Error::File { path: LOG.into(), call: "write", source })?;
    running.end(AT_ONCE * 2)?.well()?;
    match has(dir, "of another") && has(dir, "second") {
        true => Ok(()),
        false => wrong("a line that another program appended between two messages is not there"),
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
