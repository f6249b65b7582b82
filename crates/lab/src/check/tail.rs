//! The exercise tail: writes the last lines of a file without reading all of it.

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, BORDERS, few, lines, pattern, same};
use super::{Exercise, Requirement, Test, wrong};

pub(super) const EXERCISE: Exercise = Exercise {
    name: "tail",
    usage: "[-n N] FILE",
    about: "writes the last N lines (10) of FILE, found by reading blocks from its end",
    requirements: &[
        Requirement {
            id: "lines",
            what: "the last 10 lines of 100, or the last N: 3, 1, 99",
            see: "the final newline ends a line and does not begin another; weir lab tail",
            test: last_lines,
        },
        Requirement {
            id: "few-lines",
            what: "if the file has fewer than N lines, all of them",
            see: "the first line has no newline before it; weir lab tail",
            test: |dir| tails(dir, "10 of 3 lines", &lines(3), 10),
        },
        Requirement {
            id: "none",
            what: "-n 0 writes nothing",
            see: "weir lab tail",
            test: |dir| tails(dir, "no line of 20", &lines(20), 0),
        },
        Requirement {
            id: "no-newline",
            what: "a last line without a newline counts, and no newline is added",
            see: "tail(1); weir lab tail",
            test: no_newline,
        },
        Requirement {
            id: "empty",
            what: "an empty file gives no output",
            see: "lseek(2) before byte 0 fails: EINVAL",
            test: |dir| tails(dir, "an empty file", b"", 10),
        },
        Requirement {
            id: "blank-lines",
            what: "lines may be empty",
            see: "strtok(3) treats two newlines as one",
            test: |dir| tails(dir, "4 of 30 blank lines", &b"\n".repeat(30), 4),
        },
        Requirement {
            id: "huge-line",
            what: "one line of 300,000 bytes is complete",
            see: "fgets(3) returns a part of it; a line may be longer than any block",
            test: huge_line,
        },
        Requirement {
            id: "block-borders",
            what: "a newline at the border of a block counts once",
            see: "the first and last byte of a block; weir lab tail",
            test: borders,
        },
        Requirement {
            id: "binary",
            what: "NULs and bytes of 255 are ordinary bytes",
            see: "strlen(3), fputs(3) end at a NUL; getc(3) returns an int; weir lab binary-copy",
            test: binary,
        },
        Requirement {
            id: "from-the-end",
            what: "of a file of 1 MB it reads only the end",
            see: "lseek(2), pread(2): blocks from the end; weir lab tail",
            test: from_the_end,
        },
        Requirement {
            id: "calls",
            what: "it reads and writes blocks: at most one call per 512 bytes",
            see: "weir lab one-byte-writes, weir lab copy-sizes",
            test: calls,
        },
        Requirement {
            id: "pipe",
            what: "FILE may be a pipe (/dev/stdin), which cannot seek",
            see: "lseek(2): ESPIPE; then read everything, in pieces as they arrive",
            test: pipe,
        },
        Requirement {
            id: "missing",
            what: "a missing FILE is reported, with a status other than 0",
            see: "open(2), fopen(3): return values; perror(3)",
            test: |dir| dir.run(&["nowhere"]).done()?.failed("FILE does not exist").map(drop),
        },
        expect::full_disk("write(2), fclose(3) of stdout: return values; weir lab full-disk", full_disk),
        expect::short_write(short_write),
        Requirement {
            id: "usage",
            what: "-n without a number is an error, with a status other than 0",
            see: "strtol(3): endptr shows the error that atoi(3) hides",
            test: usage,
        },
    ],
};

/// Returns the last `count` lines.
fn last(bytes: &[u8], count: usize) -> &[u8] {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if count == 0 || bytes.is_empty() {
        return b"";
    }
    let mut starts = (0..body.len()).rev().filter(|&at| body[at] == b'\n').map(|at| at + 1);
    starts.nth(count - 1).map_or(bytes, |start| &bytes[start..])
}

fn tails(dir: &CheckDirectory, of: &str, bytes: &[u8], count: usize) -> Test {
    dir.put("file", bytes)?;
    let ended = dir.run(&["-n", &count.to_string(), "file"]).done()?.well()?;
    same(of, last(bytes, count), &ended.out)
}

fn last_lines(dir: &CheckDirectory) -> Test {
    let hundred = lines(100);
    dir.put("file", &hundred)?;
    let ended = dir.run(&["file"]).done()?.well()?;
    same("tail FILE, of 100 lines", last(&hundred, 10), &ended.out)?;
    [3, 1, 99].iter().try_for_each(|&count| tails(dir, &format!("-n {count} of 100 lines"), &hundred, count))
}

fn no_newline(dir: &CheckDirectory) -> Test {
    tails(dir, "-n 2 of three lines without a newline at the end", b"one\ntwo\nthree", 2)?;
    tails(dir, "-n 1 of one line without a newline", b"one", 1)
}

fn huge_line(dir: &CheckDirectory) -> Test {
    let huge = b"x".repeat(300_000);
    tails(dir, "one line of 300,000 bytes", &huge, 10)?;
    tails(dir, "-n 2, one of them of 300,000 bytes", &[&b"first\nsecond\n"[..], &huge, b"\n"].concat(), 2)
}

/// Tests a newline at the last byte of a block and at the first byte of the next one.
fn borders(dir: &CheckDirectory) -> Test {
    for size in BORDERS {
        for length in [size.saturating_sub(1), size] {
            let bytes = [&b"first\nsecond\n"[..], &b"x".repeat(length), b"\n"].concat();
            tails(dir, &format!("-n 1, a line of {length} bytes"), &bytes, 1)?;
            tails(dir, &format!("-n 2, the last line of {length} bytes"), &bytes, 2)?;
        }
    }
    Ok(())
}

fn binary(dir: &CheckDirectory) -> Test {
    let bytes = [&lines(12)[..], b"a\0b\n\xff\xff\n\0\n", &[0xff, b'\n'], b"end\0"].concat();
    tails(dir, "lines with NULs and bytes of 255", &bytes, 6)
}

const LARGE: u64 = 1_000_000;

fn from_the_end(dir: &CheckDirectory) -> Test {
    dir.put("file", pattern(LARGE as usize))?;
    let bytes = traced(dir, dir.run(&["file"]))?.on("/here/file", CallDirection::In).bytes;
    match bytes <= LARGE / 3 {
        true => Ok(()),
        false => wrong(format!("it read {bytes} bytes of {LARGE} for 10 lines")),
    }
}

fn calls(dir: &CheckDirectory) -> Test {
    let line = [&b"x".repeat(999)[..], b"\n"].concat();
    dir.put("file", line.repeat(40))?;
    let calls = traced(dir, dir.run(&["-n", "12", "file"]))?;
    few("FILE", calls.on("/here/file", CallDirection::In), 12_000)?;
    few("standard output", calls.on("/out", CallDirection::Out), 12_000)
}

fn pipe(dir: &CheckDirectory) -> Test {
    let (first, rest) = (lines(50), lines(300));
    let whole = [&first[..], b"a line in ", b"two pieces\n", &rest, b"end"].concat();
    let run = dir.run(&["-n", "305", "/dev/stdin"]).pieces(&[
        &first,
        b"a line in ",
        b"two pieces\n",
        &rest,
        b"end",
    ]);
    same("a pipe that delivers its lines in pieces", last(&whole, 305), &run.done()?.well()?.out)
}

fn full_disk(dir: &CheckDirectory) -> Test {
    dir.put("file", lines(3))?;
    dir.run(&["file"]).out_is_full().done()?.failed("standard output is full").map(drop)
}

/// With blocks of 4096 bytes the last write crosses the limit of 9728 bytes, so no further write fails.
fn short_write(dir: &CheckDirectory) -> Test {
    let bytes = lines(700);
    dir.put("file", &bytes)?;
    let ended = dir.run(&["-n", "900", "file"]).files_of(19).done()?;
    let there = ended.out.len();
    ended.failed(&format!("{there} of {} bytes fitted", bytes.len())).map(drop)
}

fn usage(dir: &CheckDirectory) -> Test {
    dir.put("file", lines(3))?;
    dir.run(&["-n", "many", "file"]).done()?.failed("-n many").map(drop)
}

#[cfg(test)]
mod tests {
    use super::last;

    #[test]
    fn last_lines_are_those_of_tail_1() {
        assert_eq!(last(b"one\ntwo\n", 1), b"two\n");
        assert_eq!(last(b"one\ntwo", 1), b"two");
        assert_eq!(last(b"one\n\n\n", 2), b"\n\n");
        assert_eq!(last(b"one\n", 5), b"one\n");
        assert_eq!((last(b"", 1), last(b"one\n", 0)), (&b""[..], &b""[..]));
    }
}
