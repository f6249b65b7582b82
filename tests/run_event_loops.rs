//! `weir run --max-delay` on programs that always wait in epoll_wait(2) with a short timeout, as event loops with timers do: their lines are
//! written within the delay, and the program notices nothing of it.
#![cfg(target_arch = "x86_64")] // On aarch64 weir does not interrupt these calls (docs/run.md).

mod common;

use std::path::Path;

use common::{disk_dir, has, run, skip, text};

/// Runs a command with its standard output in a file. Returns the last line of its standard error and the file.
fn outputs(dir: &Path, command: &str) -> (String, String) {
    let command = format!("exec {command} > lines");
    let output = run(dir, &["run", "--quiet", "--max-delay=50ms", "--", "sh", "-c", &command]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = std::fs::read_to_string(dir.join("lines")).expect("the file");
    (text(&output.stderr).trim_end().to_string(), lines)
}

fn number_after(report: &str, word: &str) -> u32 {
    let after = report.split_once(word).map(|(_, after)| after.trim_start());
    after
        .and_then(|after| after.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{word}: {report}"))
}

#[test]
fn waits_are_interrupted_unnoticed() {
    const TEST: &str = "waits_are_interrupted_unnoticed";
    let dir = disk_dir();
    if !common::programs::compile_c("run_event_loops/waits", &["-O2"], dir.path()) {
        return skip(TEST, "it needs gcc");
    }
    for (rounds, most) in [(60, 60), (8, 400)] {
        let (report, lines) = outputs(dir.path(), &format!("./waits {rounds} {most}"));
        assert!(report.starts_with("changed 0 early 0 failed 0 "), "{report}");
        let expected: String = (0..rounds).map(|i| format!("line {i}\n")).collect();
        assert_eq!(lines, expected);
        if most == 400 {
            assert!(number_after(&report, "in time") >= 4, "{report}");
        }
    }
}

#[test]
fn lines_of_asyncio_are_written_within_the_delay() {
    const TEST: &str = "lines_of_asyncio_are_written_within_the_delay";
    const PYTHON: &str = "/usr/bin/python3";
    if !has(PYTHON) {
        return skip(TEST, "it needs /usr/bin/python3");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/run_event_loops/timers.py");
    let (report, lines) = outputs(disk_dir().path(), &format!("{PYTHON} {}", script.display()));
    assert_eq!(lines.lines().count(), 10, "{lines}");
    assert!(number_after(&report, "in time") >= 6, "{report}");
}
