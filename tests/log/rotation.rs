//! Rotation: no record is lost, doubled or torn, whether weir or another program renames the log.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use crate::common::{disk_dir, names, text, wait_for, weir};
use crate::{Collector, lines_of, log_of};

/// Returns the finished logs of `out`, the oldest first.
fn finished(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = names(dir).into_iter().filter(|name| name.starts_with("out.20")).collect();
    names.sort();
    names
}

fn numbers(count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| format!("record {number:06}\n").into_bytes()).collect()
}

#[test]
fn files_of_a_size_hold_whole_records_in_order() {
    let dir = disk_dir();
    let input = numbers(20_000);
    assert!(log_of(dir.path(), &["-o", "out", "--rotate", "10K"], &input).status.success());
    let files = finished(dir.path());
    assert_eq!(files.len(), input.len().div_ceil(10_240 / 14 * 14) - 1);
    let mut all = Vec::new();
    for name in files.iter().map(String::as_str).chain(["out"]) {
        let content = std::fs::read(dir.path().join(name)).expect("a file");
        assert!(content.len() <= 10_240 && content.ends_with(b"\n"), "{name}");
        assert!(name == "out" || name.ends_with(".safe"), "{name}");
        all.extend_from_slice(&content);
    }
    assert!(all == input, "every record once, in order");
}

#[test]
fn old_files_are_compressed_and_removed() {
    let dir = disk_dir();
    let options = ["-o", "out", "--rotate", "10K", "--keep", "3"];
    for (form, suffix) in [("zstd", ".safe.zst"), ("gzip", ".safe.gz")] {
        let arguments = [&options[..], &["--compress", form]].concat();
        assert!(log_of(dir.path(), &arguments, &numbers(5000)).status.success());
        let files = finished(dir.path());
        assert_eq!(files.len(), 3, "{files:?}");
        assert!(files.iter().all(|name| name.ends_with(suffix)), "{files:?}");
        assert!(!names(dir.path()).iter().any(|name| name.ends_with(".partial") || name.ends_with(".next")));
    }
    let file = std::fs::File::open(dir.path().join(&finished(dir.path())[2])).expect("a file");
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut content).expect("gzip");
    assert!(content.starts_with(b"record 00") && content.ends_with(b"\n"), "{}", text(&content[..20]));
}

#[test]
fn sighup_rotates_or_reopens() {
    let dir = disk_dir();
    let mut command = weir(dir.path(), &["log", "-o", "out"]);
    let errors = std::fs::File::create(dir.path().join("errors")).expect("a file");
    let mut child =
        crate::common::with_signals(&mut command).stdin(Stdio::piped()).stderr(errors).spawn().expect("weir");
    let mut stdin = child.stdin.take().expect("a pipe");
    let hangup = |child: &std::process::Child| {
        // SAFETY: kill(2) has no memory effects; the child is not reaped yet.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGHUP) }, 0);
    };
    let log = dir.path().join("out");
    stdin.write_all(b"first\n").expect("written");
    lines_of(&log, 1);
    std::fs::rename(&log, dir.path().join("moved")).expect("renamed");
    hangup(&child);
    wait_for("the new log", || log.exists());
    stdin.write_all(b"second\n").expect("written");
    assert_eq!(lines_of(&log, 1), ["second"]);
    hangup(&child);
    wait_for("the finished log", || finished(dir.path()).iter().any(|name| name.ends_with(".safe")));
    stdin.write_all(b"third\n").expect("written");
    assert_eq!(lines_of(&log, 1), ["third"]);
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(lines_of(&dir.path().join("moved"), 1), ["first"]);
    assert_eq!(lines_of(&dir.path().join(&finished(dir.path())[0]), 1), ["second"]);
}

#[test]
fn a_log_that_another_program_renames_is_opened_anew() {
    let dir = disk_dir();
    let collector = Collector::start(dir.path(), &["-o", "out", "--listen", "fifo:f"]);
    let mut fifo = std::fs::File::options().write(true).open(dir.path().join("f")).expect("opened");
    let log = dir.path().join("out");
    fifo.write_all(b"before\n").expect("written");
    lines_of(&log, 1);
    std::fs::rename(&log, dir.path().join("moved")).expect("renamed");
    // The path is looked at once a second.
    wait_for("the new log", || {
        fifo.write_all(b"between\n").expect("written");
        std::fs::metadata(&log).is_ok_and(|log| log.len() > 0)
    });
    assert_eq!(collector.stop(), 0);
    let all = [lines_of(&dir.path().join("moved"), 1), lines_of(&log, 1)].concat();
    assert!(all.len() >= 3 && all[1..].iter().all(|line| line == "between"), "{all:?}");
}

#[test]
fn the_files_of_a_killed_run_are_finished() {
    let dir = disk_dir();
    let left = dir.path().join("out.20200101T000000.000001Z.unfinished");
    std::fs::write(&left, "record\n").expect("written");
    std::fs::write(dir.path().join(".out.next"), "").expect("written");
    assert!(log_of(dir.path(), &["-o", "out", "--rotate", "1K"], &numbers(200)).status.success());
    let files = finished(dir.path());
    assert_eq!(files[0], "out.20200101T000000.000001Z.safe");
    assert!(files[1..].iter().all(|name| name.ends_with(".safe")), "{files:?}");
    assert!(!dir.path().join(".out.next").exists());
}

#[test]
fn a_rotation_that_fails_is_said_once_and_loses_nothing() {
    let dir = disk_dir();
    // A directory has the name of the new file, and is not empty.
    std::fs::create_dir_all(dir.path().join(".out.next/full")).expect("a directory");
    let input = numbers(5000);
    let output = log_of(dir.path(), &["-o", "out", "--rotate", "1K"], &input);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(std::fs::read(dir.path().join("out")).expect("the log") == input, "every record once, in order");
    let errors = text(&output.stderr);
    assert_eq!(errors.matches("the log goes on without rotation").count(), 1, "{errors}");
    assert!(errors.contains(".out.next: EEXIST"), "{errors}");
}

#[test]
fn options_of_finished_files_without_a_rotation_are_said() {
    let dir = disk_dir();
    let output = log_of(dir.path(), &["-o", "out", "--keep", "3", "--compress", "gzip"], b"x\n");
    let error = text(&output.stderr);
    assert!(output.status.success(), "{error}");
    let said = "warning: --compress and --keep without --rotate and --rotate-every: the log is rotated at SIGHUP only";
    assert!(error.contains(said), "{error}");
    for rotation in [["--rotate", "1K"], ["--rotate-every", "1h"]] {
        let output = log_of(dir.path(), &[&["-o", "out", "--keep", "3"], &rotation[..]].concat(), b"x\n");
        assert!(!text(&output.stderr).contains("warning"), "{}", text(&output.stderr));
    }
    // SIGHUP does rotate.
    let mut collector =
        Collector::start(dir.path(), &["-o", "hup", "--compress", "gzip", "--run", "echo a; exec sleep 60"]);
    lines_of(&dir.path().join("hup"), 1);
    collector.signal(libc::SIGHUP);
    wait_for("a compressed file", || {
        names(dir.path()).iter().any(|name| name.starts_with("hup.20") && name.ends_with(".gz"))
    });
    collector.stop();
}
