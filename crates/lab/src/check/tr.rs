//! The exercise tr: a filter without a system call per byte.

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, BORDERS, few, odd_inputs, pattern, same};
use super::{Exercise, Requirement, Test};

pub(super) const EXERCISE: Exercise = Exercise {
    name: "tr",
    usage: "A B",
    about: "copies standard input to standard output, and replaces each byte A by the byte B",
    requirements: &[
        Requirement {
            id: "output",
            what: "each A becomes B, other bytes stay: text, no final newline, NULs, bytes of 255, one huge line",
            see: "getchar(3) returns an int: in a char the byte 255 is EOF; strlen(3) stops at a NUL",
            test: output,
        },
        Requirement {
            id: "empty",
            what: "empty input gives empty output",
            see: "read(2): 0 is the end of the file, also at the first call; feof(3) is true only after a read",
            test: |dir| translates(dir, "no input", b""),
        },
        expect::block_borders(borders),
        Requirement {
            id: "pieces",
            what: "the input may be a pipe that delivers its bytes in pieces",
            see: "read(2): a short read is not the end of the file; EINTR in signal(7)",
            test: pieces,
        },
        Requirement {
            id: "calls",
            what: "it moves blocks: at most one call per 512 bytes",
            see: "weir lab translate, weir lab one-byte-writes",
            test: calls,
        },
        expect::full_disk(
            "fclose(3) of stdout: it makes the last write, and only it returns the error; weir lab full-disk",
            full_disk,
        ),
        expect::short_write(short_write),
        Requirement {
            id: "unreadable",
            what: "an input that cannot be read is reported, with a status other than 0",
            see: "read(2): -1 is not the end of the file; ferror(3) separates errors from the end",
            test: unreadable,
        },
        expect::USAGE,
    ],
};

fn translated(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|&c| if c == b'a' { b'w' } else { c }).collect()
}

fn translates(dir: &CheckDirectory, of: &str, bytes: &[u8]) -> Test {
    let ended = dir.run(&["a", "w"]).input(bytes).done()?.well()?;
    same(&format!("tr a w, {of}"), &translated(bytes), &ended.out)
}

fn output(dir: &CheckDirectory) -> Test {
    odd_inputs().iter().try_for_each(|(of, bytes)| translates(dir, of, bytes))
}

fn borders(dir: &CheckDirectory) -> Test {
    BORDERS.iter().try_for_each(|&size| translates(dir, &format!("{size} bytes"), &pattern(size)))
}

fn pieces(dir: &CheckDirectory) -> Test {
    let (first, rest) = (pattern(10), pattern(5000));
    let ended = dir.run(&["a", "w"]).pieces(&[&first, &rest, b"a"]).done()?.well()?;
    same(
        "a pipe that delivers 10, 5000 and 1 bytes",
        &translated(&[&first[..], &rest, b"a"].concat()),
        &ended.out,
    )
}

fn calls(dir: &CheckDirectory) -> Test {
    let calls = traced(dir, dir.run(&["a", "w"]).input(pattern(8192)))?;
    few("standard input", calls.on("/input", CallDirection::In), 8192)?;
    few("standard output", calls.on("/out", CallDirection::Out), 8192)
}

fn full_disk(dir: &CheckDirectory) -> Test {
    for (of, size) in [("20 bytes", 20), ("100,000 bytes", 100_000)] {
        let run = dir.run(&["a", "w"]).input(pattern(size)).out_is_full();
        run.done()?.failed(&format!("{of} to a full disk"))?;
    }
    Ok(())
}

fn short_write(dir: &CheckDirectory) -> Test {
    let ended = dir.run(&["a", "w"]).input(pattern(9900)).files_of(19).done()?;
    let there = ended.out.len();
    ended.failed(&format!("{there} of 9900 bytes fitted")).map(drop)
}

fn unreadable(dir: &CheckDirectory) -> Test {
    dir.run(&["a", "w"]).input_directory().done()?.failed("standard input is a directory").map(drop)
}
