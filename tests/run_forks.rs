//! Bytes that are pending at a fork(2) belong to two processes, of which one writes them: a daemon whose parent ends by _exit(2), a
//! parent whose workers do. No option of `weir run` writes them for the other one too; a rescue writes them once if nobody has.

mod common;

use std::fs;
use std::path::Path;

use common::{disk_dir, has, run, skip, text, wait_for};

const OPTIONS: [&[&str]; 5] =
    [&[], &["--max-delay=20ms"], &["--rescue"], &["--max-delay=20ms", "--rescue"], &["--fix-fork"]];

/// Runs a command until its file has not grown for 300 ms, because a process can run on after the command. Returns the file.
fn log_of(dir: &Path, options: &[&str], command: &[&str]) -> String {
    let log = dir.join("log");
    let _absent = fs::remove_file(&log);
    let words = [&["run", "--quiet"], options, &["--"], command].concat();
    let output = run(dir, &words);
    assert!(output.stderr.is_empty() || options.contains(&"--rescue"), "{words:?}: {}", text(&output.stderr));
    let read = || text(&fs::read(&log).unwrap_or_default());
    let mut last = (read(), 0);
    wait_for("an unchanged file", || {
        let now = read();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        std::thread::sleep(std::time::Duration::from_millis(10));
        last.1 >= 30
    });
    last.0
}

#[test]
fn bytes_that_are_pending_at_a_fork_are_written_once() {
    const TEST: &str = "bytes_that_are_pending_at_a_fork_are_written_once";
    let dir = disk_dir();
    if !common::programs::compile_c("run_forks/copies", &[], dir.path()) {
        return skip(TEST, "it needs gcc");
    }
    for options in OPTIONS {
        // Before an execve(2) --rescue cannot know whether a child still has a copy (docs/run.md).
        let executed = (!options.contains(&"--rescue")).then_some("executed");
        for case in ["daemon", "killed"].into_iter().chain(executed) {
            let log = log_of(dir.path(), options, &["./copies", case]);
            assert_eq!(log, "header\nchild\n", "{case} {options:?}");
        }
        let log = log_of(dir.path(), options, &["./copies", "worker"]);
        let mut lines: Vec<&str> = log.lines().filter(|line| *line != "child").collect();
        lines.sort_unstable();
        assert_eq!(lines, ["header", "parent"], "{options:?}: {log}");
        // The shell is the command, so that the supervision goes on after the end of the parent.
        let twice = log_of(dir.path(), options, &["sh", "-c", "exec 2>/dev/null; ./copies twice; sleep 0.5"]);
        let is_rescued = options.contains(&"--rescue");
        assert!(twice == "header\nrow\n" || twice == "header\n" && !is_rescued, "{options:?}: {twice}");
        let lost = log_of(dir.path(), options, &["sh", "-c", "./copies lost; sleep 0.5"]);
        assert!(
            lost == "header\n" || lost.is_empty() && !options.contains(&"--rescue"),
            "{options:?}: {lost}"
        );
    }
}

const DAEMON: &str = "import os, time\n\
    log = open('log', 'w')\n\
    log.write('header\\n')\n\
    if os.fork(): os._exit(0)\n\
    os.setsid()\n\
    if os.fork(): os._exit(0)\n\
    time.sleep(0.15)\n\
    log.write('child\\n')\n\
    log.close()\n";

const WORKERS: &str = "import multiprocessing, time\n\
    log = open('log', 'w')\n\
    log.write('header\\n')\n\
    def work(number):\n\
    \x20   time.sleep(0.1)\n\
    \x20   return number\n\
    with multiprocessing.get_context('fork').Pool(2) as pool: pool.map(work, range(4))\n\
    log.write('end\\n')\n\
    log.close()\n";

#[test]
fn daemons_and_workers_of_python_write_their_bytes_once() {
    if !has("/usr/bin/python3") {
        return skip("daemons_and_workers_of_python_write_their_bytes_once", "it needs python3");
    }
    let dir = disk_dir();
    for (program, expected) in [(DAEMON, "header\nchild\n"), (WORKERS, "header\nend\n")] {
        for options in OPTIONS {
            let log = log_of(dir.path(), options, &["/usr/bin/python3", "-c", program]);
            assert_eq!(log, expected, "{options:?}: {program}");
        }
    }
}

#[test]
fn a_stream_that_also_reads_writes_its_bytes_once() {
    const TEST: &str = "a_stream_that_also_reads_writes_its_bytes_once";
    let dir = disk_dir();
    if !common::programs::compile_c("run_forks/update", &[], dir.path()) {
        return skip(TEST, "it needs gcc");
    }
    let log = dir.path().join("log");
    for mode in ["w+", "a+"] {
        for options in [&["--fix-fork"][..], &["--max-delay=20ms"], &["--fix-fork", "--rescue"]] {
            let _absent = fs::remove_file(&log);
            let output = run(dir.path(), &[&["run"], options, &["--", "./update", mode]].concat());
            let said = text(&output.stderr);
            assert_eq!(text(&output.stdout), "once\nparent\n", "{mode} {options:?}: {said}");
            assert!(!said.contains("twice"), "{mode} {options:?}: {said}");
        }
    }
    // The bytes replace others, which the program could read before.
    fs::write(&log, "0123456789abcdefghij").expect("the file");
    let output = run(dir.path(), &["run", "--fix-fork", "--", "./update", "r+"]);
    let said = text(&output.stderr);
    assert!(said.contains("5 bytes for ") && said.contains("can be written twice"), "{said}");
    assert!(said.contains("the program also reads the file"), "{said}");
}
