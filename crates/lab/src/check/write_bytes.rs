//! The exercise write_bytes: writes a number of bytes in calls of a given size.

use std::fs;

use super::calls::{CallDirection, traced};
use super::check_directory::CheckDirectory;
use super::expect::{self, AT_ONCE};
use super::{CheckFailure, Exercise, Requirement, Test, wrong};
use crate::Error;

pub(super) const EXERCISE: Exercise = Exercise {
    name: "write_bytes",
    usage: "FILE BYTES SIZE [sync]",
    about: "writes BYTES bytes to FILE, which is created or replaced, in write calls of SIZE bytes; with `sync` each \
            call waits until its bytes are on the device",
    requirements: &[
        Requirement {
            id: "length",
            what: "FILE has BYTES bytes: a multiple of SIZE, none, one more, one less, less than SIZE, 0",
            see: "the last call writes the rest, not SIZE",
            test: length,
        },
        Requirement {
            id: "calls",
            what: "it makes one write per SIZE bytes, and one for the rest",
            see: "write(2): stdio would combine the writes (setbuf(3)); weir lab write-sizes",
            test: calls,
        },
        Requirement {
            id: "large",
            what: "BYTES may be more than 4 GiB",
            see: "int ends at 2147483647: use off_t or long long, and strtoll(3), not atoi(3)",
            test: large,
        },
        Requirement {
            id: "truncate",
            what: "an old, longer FILE is truncated",
            see: "open(2): O_TRUNC; weir lab write-sizes",
            test: truncate,
        },
        Requirement {
            id: "sync",
            what: "with sync each write waits for the device; without it none does",
            see: "open(2): O_SYNC; fdatasync(2); weir lab sync-writes",
            test: sync,
        },
        Requirement {
            id: "size-zero",
            what: "a SIZE of 0 is an error, with a status other than 0",
            see: "a loop that writes 0 bytes does not end; a division by 0 is SIGFPE",
            test: size_zero,
        },
        Requirement {
            id: "unwritable",
            what: "a FILE that cannot be created is reported, with a status other than 0",
            see: "open(2): return value; perror(3)",
            test: unwritable,
        },
        expect::full_disk("write(2): -1 and ENOSPC; weir lab full-disk", |dir| {
            dir.run(&["/dev/full", "1000", "100"]).done()?.failed("a full disk").map(drop)
        }),
        expect::short_write(short_write),
        Requirement {
            id: "usage",
            what: "without arguments, or if BYTES is not a number, it prints its usage, with a status other than 0",
            see: "strtoll(3): endptr shows the error that atoi(3) hides",
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
    let traced = traced(dir, dir.run(&["file", "1050", "100"]))?;
    match traced.on("/here/file", CallDirection::Out).calls {
        11 => Ok(()),
        calls => wrong(format!("1050 bytes by 100 made {calls} writes; 10 of 100 and one of 50 are 11")),
    }
}

/// Writes 5 GB to /dev/null, which needs neither space nor time.
fn large(dir: &CheckDirectory) -> Test {
    let traced = traced(dir, dir.run(&["/dev/null", "5000000000", "67108864"]))?;
    match traced.on("/dev/null", CallDirection::Out).bytes {
        5_000_000_000 => Ok(()),
        bytes => wrong(format!("it wrote {bytes} of 5000000000 bytes")),
    }
}

fn truncate(dir: &CheckDirectory) -> Test {
    dir.put("file", b"y".repeat(10_000))?;
    dir.run(&["file", "10", "10"]).done()?.well()?;
    match dir.get("file")?.len() {
        10 => Ok(()),
        bytes => wrong(format!("after writing 10 bytes to a FILE of 10,000 bytes it has {bytes} bytes")),
    }
}

/// Accepts sync calls and the flag of the descriptor.
fn sync(dir: &CheckDirectory) -> Test {
    let syncs = |words: &[&str]| -> Result<u64, CheckFailure> {
        let arguments = [&["file", "30", "10"], words].concat();
        Ok(traced(dir, dir.run(&arguments))?.on("/here/file", CallDirection::Out).syncs)
    };
    if syncs(&[])? > 0 || is_open_sync(dir, &[])? {
        return wrong("without the word sync it also waits for the device");
    }
    let with_word = syncs(&["sync"])?;
    if with_word >= 3 || is_open_sync(dir, &["sync"])? {
        return Ok(());
    }
    match with_word {
        0 => wrong(
            "with the word sync it does not wait for the device: neither O_SYNC nor fsync nor fdatasync",
        ),
        count => wrong(format!("with the word sync, 3 writes waited {count} times for the device")),
    }
}

/// Returns whether the solution opens FILE with O_SYNC or O_DSYNC. FILE is a pipe without a reader: the solution blocks
/// in write(2), and its descriptor can be inspected.
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
    let (pid, mut found) = (running.pid(), None);
    running.until(AT_ONCE, || {
        found = flags(pid);
        found.is_some()
    });
    Ok(found.is_some_and(|flags| flags & O_DSYNC != 0))
}

fn size_zero(dir: &CheckDirectory) -> Test {
    dir.run(&["file", "10", "0"]).start()?.end(AT_ONCE)?.failed("write_bytes FILE 10 0").map(drop)
}

fn unwritable(dir: &CheckDirectory) -> Test {
    dir.run(&["no-directory/file", "10", "1"])
        .done()?
        .failed("FILE is in a directory that does not exist")
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
