//! The exercise copy: copies all bytes of a file into another file, or reports the error.

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, BORDERS, few, odd_inputs, pattern, same};
use super::{Exercise, Requirement, Test, wrong};

pub(super) const EXERCISE: Exercise = Exercise {
    name: "copy",
    usage: "FROM TO",
    about: "copies the file FROM to TO, which is created or replaced",
    requirements: &[
        Requirement {
            id: "same-bytes",
            what: "the copy has the same bytes: text, no final newline, NULs, bytes of 255, one huge line",
            see: "read(2), fread(3): they count bytes; C strings end at a NUL; weir lab binary-copy",
            test: same_bytes,
        },
        Requirement {
            id: "empty",
            what: "the copy of an empty file is empty",
            see: "read(2): 0 is the end of the file, also at the first call",
            test: empty,
        },
        expect::block_borders(borders),
        Requirement {
            id: "pieces",
            what: "FROM may be a pipe that delivers its bytes in pieces (/dev/stdin)",
            see: "read(2): a short read is not the end of the file; EINTR in signal(7)",
            test: pieces,
        },
        Requirement {
            id: "truncate",
            what: "an old, longer TO is truncated",
            see: "open(2): O_TRUNC; fopen(3): \"w\"",
            test: truncate,
        },
        Requirement {
            id: "same-file",
            what: "copying a file onto itself fails, and the file keeps its bytes",
            see: "stat(2): compare st_dev and st_ino before you truncate TO",
            test: same_file,
        },
        Requirement {
            id: "calls",
            what: "it moves blocks: at most one call per 512 bytes",
            see: "weir lab copy-sizes, weir lab one-byte-writes",
            test: calls,
        },
        Requirement {
            id: "missing",
            what: "a missing FROM is reported, with a status other than 0, and TO is unchanged",
            see: "open(2): open FROM first; perror(3), exit(3)",
            test: missing,
        },
        Requirement {
            id: "unwritable",
            what: "a TO that cannot be created is reported, with a status other than 0",
            see: "open(2), fopen(3): return values; perror(3)",
            test: unwritable,
        },
        expect::full_disk(
            "fclose(3): it makes the last write, and only it returns the error; weir lab full-disk",
            full_disk,
        ),
        expect::short_write(short_write),
        expect::USAGE,
    ],
};

fn copied(dir: &CheckDirectory, of: &str, bytes: &[u8]) -> Test {
    dir.put("from", bytes)?;
    dir.run(&["from", "to"]).done()?.well()?;
    same(of, bytes, &dir.get("to")?)
}

/// Copies to a new file, so that only the requirement `truncate` depends on truncation.
fn copied_to_new(dir: &CheckDirectory, of: &str, bytes: &[u8]) -> Test {
    dir.remove("to");
    copied(dir, of, bytes)
}

fn same_bytes(dir: &CheckDirectory) -> Test {
    odd_inputs().iter().try_for_each(|(of, bytes)| copied_to_new(dir, of, bytes))
}

fn empty(dir: &CheckDirectory) -> Test {
    copied(dir, "an empty file", b"")
}

fn borders(dir: &CheckDirectory) -> Test {
    BORDERS
        .iter()
        .try_for_each(|&size| copied_to_new(dir, &format!("a file of {size} bytes"), &pattern(size)))
}

fn pieces(dir: &CheckDirectory) -> Test {
    let (first, rest) = (pattern(10), pattern(5000));
    dir.run(&["/dev/stdin", "to"]).pieces(&[&first, &rest, b"end"]).done()?.well()?;
    same("a pipe that delivers 10, 5000 and 3 bytes", &[&first[..], &rest, b"end"].concat(), &dir.get("to")?)
}

fn truncate(dir: &CheckDirectory) -> Test {
    dir.put("to", pattern(10_000))?;
    copied(dir, "over a file of 10,000 bytes", b"short\n")
}

fn same_file(dir: &CheckDirectory) -> Test {
    dir.put("from", pattern(3000))?;
    let ended = dir.run(&["from", "from"]).done()?;
    same("a file copied onto itself", &pattern(3000), &dir.get("from")?)?;
    ended.failed("a file copied onto itself").map(drop)
}

fn calls(dir: &CheckDirectory) -> Test {
    dir.put("from", pattern(8192))?;
    let calls = traced(dir, dir.run(&["from", "to"]))?;
    few("FROM", calls.on("/here/from", CallDirection::In), 8192)?;
    few("TO", calls.on("/here/to", CallDirection::Out), 8192)
}

fn missing(dir: &CheckDirectory) -> Test {
    dir.put("to", "precious\n")?;
    dir.run(&["nowhere", "to"]).done()?.failed("FROM does not exist")?;
    same("TO, when FROM does not exist", b"precious\n", &dir.get("to")?)
}

fn unwritable(dir: &CheckDirectory) -> Test {
    dir.put("from", "bytes\n")?;
    dir.run(&["from", "no-directory/to"]).done()?.failed("TO is in a directory that does not exist").map(drop)
}

fn full_disk(dir: &CheckDirectory) -> Test {
    for (of, size) in [("20 bytes", 20), ("100,000 bytes", 100_000)] {
        dir.put("from", pattern(size))?;
        dir.run(&["from", "/dev/full"]).done()?.failed(&format!("{of} to a full disk"))?;
    }
    Ok(())
}

/// With the usual buffer sizes the last write crosses the limit of 9728 bytes, so no further write fails.
fn short_write(dir: &CheckDirectory) -> Test {
    dir.put("from", pattern(9900))?;
    let ended = dir.run(&["from", "to"]).files_of(19).done()?;
    let there = dir.get("to")?.len();
    if there > 9728 {
        return wrong(format!("the file has {there} bytes although its limit is 9728"));
    }
    ended.failed(&format!("{there} of 9900 bytes fitted")).map(drop)
}
