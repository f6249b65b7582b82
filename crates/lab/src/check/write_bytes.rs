//! The exercise write_bytes: so many bytes, in calls of that size, and no others.

use std::fs;

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, AT_ONCE};
use super::{CheckFailure, Exercise, Requirement, Test, wrong};
use crate::Error;

pub(super) const EXERCISE: Exercise = Exercise {
    name: "write_bytes",
    usage: "FILE BYTES SIZE [sync]",
    about: "writes BYTES bytes into FILE, which is made or replaced, in write calls of SIZE; with `sync` each waits \
            until its bytes are on the device",
    requirements: &[
        Requirement {
            id: "length",
            what: "FILE has BYTES bytes: a multiple of SIZE, none, one more, one less, less than SIZE, 0",
            see: "the last call writes the rest, not SIZE",
            test: length,
        },
        Requirement {
            id: "calls",
            what: "it makes a write for each SIZE, and one for the rest",
            see: "write(2): stdio would gather them (setbuf(3)); weir lab write-sizes",
            test: calls,
        },
        Requirement {
            id: "large",
            what: "BYTES may be more than 4 GiB",
            see: "int ends at 2147483647: off_t or long long, strtoll(3), not atoi(3)",
            test: large,
        },
        Requirement {
            id: "truncate",
            what: "of a longer FILE nothing is left",
            see: "open(2): O_TRUNC; weir lab write-sizes",
            test: truncate,
        },
        Requirement {
            id: "sync",
            what: "with sync each write waits for the device, without it none does",
            see: "open(2): O_SYNC; fdatasync(2); weir lab sync-writes",
            test: sync,
        },
        Requirement {
            id: "size-zero",
            what: "a SIZE of 0 is refused, with a status that is not 0",
            see: "a loop that writes nothing has no end; a division by 0 is SIGFPE",
            test: size_zero,
        },
        Requirement {
            id: "unwritable",
            what: "a FILE that cannot be made is told, with a status that is not 0",
            see: "open(2): what it returns; perror(3)",
            test: unwritable,
        },
        expect::full_disk("write(2): -1 and ENOSPC; weir lab full-disk", |dir| {
            dir.run(&["/dev/full", "1000", "100"]).done()?.failed("a full disk").map(drop)
        }),
        expect::short_write(short_write),
        Requirement {
            id: "usage",
            what: "without arguments, or with BYTES no number, it says how it is used, with a status that is not 0",
            see: "strtoll(3): endptr tells what atoi(3) does not",
            test: usage,
        },
    ],
};

fn length(dir: &CheckDirectory) -> Test {
    for (bytes, size) in [(8192, 4096), (4097, 4096), (4095, 4096), (10, 4096), (10, 1), (0, 16)] {
        dir.remove("file");
        dir.run(&["file", &bytes.to_string(), &size.to_string()]).done()?.well()?;
        let got = dir.get("file")?.len();
        if got != bytes {
            return wrong(format!("write_bytes FILE {bytes} {size}: FILE has {got} bytes"));
        }
    }
    Ok(())
}

fn calls(dir: &CheckDirectory) -> Test {
    let flow = traced(dir, dir.run(&["file", "1050", "100"]))?.on("/here/file", CallDirection::Out);
    match flow.calls {
        11 => Ok(()),
        calls => wrong(format!("1050 bytes by 100 made {calls} writes; 10 of 100 and one of 50 are 11")),
    }
}

/// /dev/null takes any number of bytes in no time.
fn large(dir: &CheckDirectory) -> Test {
    let flow =
        traced(dir, dir.run(&["/dev/null", "5000000000", "67108864"]))?.on("/dev/null", CallDirection::Out);
    match flow.bytes {
        5_000_000_000 => Ok(()),
        bytes => wrong(format!("of 5000000000 bytes {bytes} were written")),
    }
}

fn truncate(dir: &CheckDirectory) -> Test {
    dir.put("file", b"y".repeat(10_000))?;
    dir.run(&["file", "10", "10"]).done()?.well()?;
    match dir.get("file")?.len() {
        10 => Ok(()),
        bytes => wrong(format!("10 bytes over a FILE of 10,000: it has {bytes}")),
    }
}

/// By calls that force bytes out, or by the flag of the descriptor.
fn sync(dir: &CheckDirectory) -> Test {
    let syncs = traced(dir, dir.run(&["file", "30", "10"]))?.on("/here/file", CallDirection::Out).syncs;
    if syncs > 0 || is_open_sync(dir, &[])? {
        return wrong("without the word sync it waits for the device all the same");
    }
    let flow = traced(dir, dir.run(&["file", "30", "10", "sync"]))?.on("/here/file", CallDirection::Out);
    if flow.syncs >= 3 || is_open_sync(dir, &["sync"])? {
        return Ok(());
    }
    match flow.syncs {
        0 => wrong("with the word sync nothing waits for the device: neither O_SYNC nor fsync or fdatasync"),
        syncs => wrong(format!("with the word sync 3 writes made {syncs} waits for the device")),
    }
}

/// A pipe that nobody empties holds it, so that its descriptors can be looked at.
fn is_open_sync(dir: &CheckDirectory, word: &[&str]) -> Result<bool, CheckFailure> {
    const O_DSYNC: u64 = 0o10000; // a part of O_SYNC
    dir.remove("pipe");
    let path = dir.path().join("pipe");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    let made = rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0);
    let failed = |call, source: std::io::Error| Error::File { path: path.clone(), call, source };
    made.map_err(|error| failed("mknod", error.into()))?;
    let _held =
        fs::File::options().read(true).write(true).open(&path).map_err(|error| failed("open", error))?;
    let mut running = dir.run(&[&["pipe", "1000000", "1000"], word].concat()).start()?;
    let flags = |pid: u32| -> Option<u64> {
        let of = |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| to.ends_with("here/pipe"));
        let fd = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().find(of)?;
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", fd.file_name().display())).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u64::from_str_radix(flags.trim(), 8).ok()
    };
    let (pid, mut seen) = (running.pid(), None);
    running.until(AT_ONCE, || {
        seen = flags(pid);
        seen.is_some()
    });
    Ok(seen.is_some_and(|flags| flags & O_DSYNC != 0))
}

fn size_zero(dir: &CheckDirectory) -> Test {
    dir.run(&["file", "10", "0"]).start()?.end(AT_ONCE)?.failed("write_bytes FILE 10 0").map(drop)
}

fn unwritable(dir: &CheckDirectory) -> Test {
    dir.run(&["no-directory/file", "10", "1"])
        .done()?
        .failed("FILE is in a directory that is not there")
        .map(drop)
}

fn short_write(dir: &CheckDirectory) -> Test {
    let ended = dir.run(&["file", "9900", "3300"]).files_of(19).done()?;
    let there = dir.get("file")?.len();
    ended.failed(&format!("{there} of 9900 bytes fitted")).map(drop)
}

fn usage(dir: &CheckDirectory) -> Test {
    dir.run(&[]).done()?.failed("without arguments")?;
    dir.run(&["file", "many", "10"]).done()?.failed("write_bytes FILE many 10").map(drop)
}
