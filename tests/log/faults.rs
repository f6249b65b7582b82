//! A full disk, a removed file, a torn log, a closed pipe: nothing is lost, and one sentence says what to do.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{WEIR, disk_dir, has_private_mounts, is_root, run, skip, text, wait_for, weir};
use crate::{Collector, lines_of, log_of};

/// A small file system in memory; unmounted on drop.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts it for a test; reports the test as skipped, and returns None, where that is not possible.
    pub(crate) fn for_test(test: &str, size: &str) -> Option<Self> {
        if !is_root() || !has_private_mounts() {
            skip(test, "needs root, to mount a small file system");
            return None;
        }
        let dir = disk_dir();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "weir-test"])
            .arg(dir.path())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip(test, "mount refuses a tmpfs");
            return None;
        }
        Some(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let test = "a_full_disk_loses_nothing";
    let Some(disk) = SmallDisk::for_test(test, "256k") else { return };
    let dir = disk_dir();
    std::fs::write(disk.path().join("ballast"), vec![0; 150_000]).expect("written");
    let log = disk.path().join("out");
    let collector = Collector::start(
        dir.path(),
        &["-o", log.to_str().expect("a path"), "--listen", "unix:s", "--listen", "unix:t"],
    );
    let senders: Vec<_> = ["s", "t"]
        .map(|name| {
            let mut socket = UnixStream::connect(dir.path().join(name)).expect("connected");
            std::thread::spawn(move || {
                for number in 0..4000 {
                    socket
                        .write_all(format!("{name} {number:04} {}\n", "x".repeat(10)).as_bytes())
                        .expect("sent");
                }
            })
        })
        .into();
    wait_for("a full disk", || collector.errors().contains("ENOSPC"));
    assert!(collector.errors().contains("free space on the file system"), "{}", collector.errors());
    std::fs::remove_file(disk.path().join("ballast")).expect("removed");
    let lines = lines_of(&log, 8000);
    for name in ["s", "t"] {
        let own: Vec<&String> = lines.iter().filter(|line| line.starts_with(name)).collect();
        let expected: Vec<String> =
            (0..4000).map(|number| format!("{name} {number:04} {}", "x".repeat(10))).collect();
        assert!(own.into_iter().eq(expected.iter()), "{name}: every record once, in order");
    }
    assert_eq!(collector.errors().matches("ENOSPC").count(), 1, "said once: {}", collector.errors());
    assert!(collector.errors().contains("writing again; nothing was lost"), "{}", collector.errors());
    senders.into_iter().for_each(|sender| sender.join().expect("sent"));
    assert_eq!(collector.stop(), 0);
}

#[test]
fn dropped_records_are_counted_in_the_log() {
    let test = "dropped_records_are_counted_in_the_log";
    for policy in ["drop-oldest", "drop-newest"] {
        let Some(disk) = SmallDisk::for_test(test, "256k") else { return };
        let dir = disk_dir();
        std::fs::write(disk.path().join("ballast"), vec![0; 200_000]).expect("written");
        let log = disk.path().join("out");
        let path = log.to_str().expect("a path");
        let collector = Collector::start(
            dir.path(),
            &["-o", path, "--listen", "unix:s", "--overflow", policy, "--memory", "10K"],
        );
        let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
        for number in 0..20_000 {
            socket.write_all(format!("record {number:05}\n").as_bytes()).expect("sent without waiting");
        }
        wait_for("a full disk", || collector.errors().contains("ENOSPC"));
        std::fs::remove_file(disk.path().join("ballast")).expect("removed");
        wait_for("the count", || {
            text(&std::fs::read(&log).expect("the log")).contains(" records of s#1 dropped")
        });
        let errors = collector.errors();
        assert!(errors.contains("writing again") && !errors.contains("nothing was lost"), "{errors}");
        assert!(!errors.contains("weir: "), "{errors}");
        drop(socket);
        assert_eq!(collector.stop(), 0);
        let lines = lines_of(&log, 1);
        let dropped: Vec<usize> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("weir: ")?.split(' ').next()?.parse().ok())
            .collect();
        let numbers: Vec<usize> =
            lines.iter().filter_map(|line| line.strip_prefix("record ")?.parse().ok()).collect();
        assert_eq!(numbers.len() + dropped.iter().sum::<usize>(), 20_000, "{policy}: {dropped:?}");
        assert!(numbers.is_sorted() && numbers.len() < 20_000, "{policy}");
        assert_eq!(lines.len(), numbers.len() + dropped.len(), "{policy}: only whole records");
        if policy == "drop-oldest" {
            assert_eq!(numbers.last(), Some(&19_999), "the newest are kept");
        }
    }
}

#[test]
fn a_log_that_cannot_be_written_at_the_end_fails() {
    let test = "a_log_that_cannot_be_written_at_the_end_fails";
    let Some(disk) = SmallDisk::for_test(test, "256k") else { return };
    let dir = disk_dir();
    let log = disk.path().join("out");
    let collector = Collector::start(
        dir.path(),
        &["-o", log.to_str().expect("a path"), "--listen", "unix:s", "--drain", "1s"],
    );
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    socket.set_nonblocking(true).expect("set");
    let record = [&[b'x'; 999][..], b"\n"].concat();
    wait_for("a full disk", || {
        // The socket is full when weir reads no more.
        while socket.write(&record).is_ok() {}
        collector.errors().contains("ENOSPC")
    });
    let errors = dir.path().join("errors");
    assert_eq!(collector.stop(), 1);
    let errors = std::fs::read_to_string(errors).expect("read");
    assert!(errors.contains("not in the log"), "{errors}");
}

#[test]
fn a_torn_log_is_mended_at_the_start() {
    let dir = disk_dir();
    let log = dir.path().join("out");
    std::fs::write(&log, "whole\ntor").expect("written");
    let output = log_of(dir.path(), &["-o", "out"], b"next\n");
    assert!(
        text(&output.stderr).contains("ended in an unfinished record of 3 bytes"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(std::fs::read(&log).expect("the log"), b"whole\ntor\nnext\n");

    std::fs::write(&log, b"whole\n\0\0\0\0").expect("written");
    let output = log_of(dir.path(), &["-o", "out"], b"next\n");
    assert!(text(&output.stderr).contains("4 NUL bytes"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&log).expect("the log"), b"whole\nnext\n");

    std::fs::write(&log, b"{\"a\":1}\n{\"a\":").expect("written");
    let output = log_of(dir.path(), &["-o", "out", "--format", "json"], b"");
    assert!(text(&output.stderr).contains("which is now in out.torn"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&log).expect("the log"), b"{\"a\":1}\n");
    assert_eq!(std::fs::read(dir.path().join("out.torn")).expect("kept"), b"{\"a\":");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let dir = disk_dir();
    std::os::unix::fs::symlink("elsewhere", dir.path().join("link")).expect("a link");
    for (arguments, sentence) in [
        (&["-o", "none/out"][..], "open none/out: ENOENT"),
        (&["-o", "."], "open .: EISDIR"),
        (&["-o", "link"], "open link: ELOOP"),
        (&["-o", "out", "--listen", "unix:none/s"], "bind none/s: ENOENT"),
        (&["-o", "out", "--listen", "fifo:none/f"], "mkfifo none/f: ENOENT"),
        (&["-o", "out", "--follow", "none/*"], "ENOENT"),
    ] {
        let output = log_of(dir.path(), arguments, b"");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains(sentence), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(!dir.path().join("elsewhere").exists());
}

#[test]
fn a_missing_dev_null_is_named() {
    const NAME: &str = "a_missing_dev_null_is_named";
    if !has_private_mounts() {
        return skip(NAME, "needs root, to hide /dev");
    }
    let dir = disk_dir();
    let script = r#"mount -t tmpfs none /dev && exec "$@""#;
    let words = ["-m", "sh", "-c", script, "sh", WEIR, "log", "-o", "-", "--", "echo", "hi"];
    let output = Command::new("unshare").args(words).current_dir(dir.path()).output().expect("unshare");
    let told = text(&output.stderr);
    assert!(told.contains("open /dev/null: ENOENT") && told.contains("mknod -m 666 /dev/null"), "{told}");
    assert!(!told.contains("exec echo"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_closed_standard_output_ends_the_collector() {
    let dir = disk_dir();
    let mut child = weir(dir.path(), &["log", "-o", "-", "--listen", "unix:s"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weir starts");
    drop(child.stdout.take());
    let mut socket = None;
    // Its file is there a moment before connections are accepted.
    wait_for("the socket", || {
        socket = UnixStream::connect(dir.path().join("s")).ok();
        socket.is_some()
    });
    socket.expect("a connection").write_all(b"lost\n").expect("sent");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let output = child.wait_with_output().expect("output");
    assert!(text(&output.stderr).contains("EPIPE"), "{}", text(&output.stderr));
    assert_eq!(run(dir.path(), &["log", "status", "out"]).status.code(), Some(1));
}

/// A newline in a name would forge a line of output; a byte that is no UTF-8 would name another file.
#[test]
fn hostile_names_are_escaped() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = disk_dir();
    let name = std::ffi::OsStr::from_bytes(b"n\nweir: \xff");
    let shown = r"n\nweir: \xff";
    let weir_in = |arguments: &[&std::ffi::OsStr]| {
        let mut command = crate::common::weir(dir.path(), &["log"]);
        command.args(arguments).stdin(std::process::Stdio::null()).output().expect("weir runs")
    };
    let in_name = |prefix: &str| {
        let mut text = std::ffi::OsString::from(prefix);
        text.push(name);
        text
    };
    for arguments in [
        vec!["status".as_ref(), name],
        vec!["check".as_ref(), name],
        vec!["-o".as_ref(), "out".as_ref(), "--".as_ref(), name],
        vec!["-o".as_ref(), in_name("missing/").as_os_str()],
    ] {
        let errors = text(&weir_in(&arguments).stderr);
        assert!(errors.contains(shown), "{arguments:?}: {errors}");
    }
    let output = weir_in(&["-o".as_ref(), name, "--json".as_ref(), "j".as_ref()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = std::fs::read_to_string(dir.path().join("j")).expect("the document");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["log"], "n\nweir: \u{10feff}");
    let output = weir_in(&["check".as_ref(), name, "--json".as_ref(), "-".as_ref()]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["log"], "n\nweir: \u{10feff}");
}
