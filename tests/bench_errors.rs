//! `weir bench` with wrong input and on failing systems: a clear error, the documented exit status, no files left.

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{WEIR, disk_dir, has_private_mounts, names, run, skip, text, weir};

/// Asserts the exit status and the words of the error, and that weir does not panic.
fn fails(output: &Output, status: i32, words: &[&str]) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    for word in words {
        assert!(errors.contains(word), "'{word}' is not in: {errors}");
    }
}

#[test]
fn wrong_usage_is_2_with_a_suggestion() {
    let dir = disk_dir();
    for (arguments, words) in [
        (&["frobnicate"][..], &["frobnicate"][..]),
        (&["bnech"], &["bench"]),
        (&["bench", "cpoy"], &["unknown workload 'cpoy'", "did you mean 'copy'?"]),
        (&["bench", "copy", "--method", "sycall"], &["unknown method 'sycall'", "did you mean 'syscall'?"]),
        (&["bench", "copy", "--size", "0"], &["0 bytes"]),
        (&["bench", "copy", "--size", "4x"], &["'x' is not a unit"]),
        (&["bench", "copy", "--records", "0"], &["0 bytes"]),
        (&["bench", "copy", "--records", "4x"], &["'x' is not a unit"]),
        (&["bench", "copy", "--records", "2GiB"], &["1 GiB"]),
        (&["bench", "copy", "--sync", "fsnc"], &["did you mean 'fsync'?"]),
        (&["bench", "copy", "--sync", "end:3"], &["does not repeat"]),
        (&["bench", "copy", "--cache", "tepid"], &["unknown cache state 'tepid'", "warm"]),
        (&["bench", "copy", "--mode", "lien"], &["did you mean 'line'?"]),
        (&["bench", "copy", "--advice", "hurry"], &["unknown advice 'hurry'"]),
        (&["bench", "copy", "--fs", "etx4"], &["did you mean 'ext"]),
        (&["bench", "copy", "--budget", "soon"], &["'soon' is not a duration"]),
        (&["bench", "copy", "--vector", "0"], &["IOV_MAX"]),
        (&["bench", "--published", "tlpi-99"], &["no such table"]),
        (&["bench", "copy", "--frobnicate"], &["--frobnicate"]),
        (&["bench"], &["give a WORKLOAD"]),
    ] {
        fails(&run(dir.path(), arguments), 2, words);
    }
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_missing_directory_is_named() {
    let dir = disk_dir();
    let output = run(dir.path(), &["bench", "copy", "--dir", "absent", "--budget", "1s"]);
    fails(&output, 1, &["absent", "stat", "ENOENT", "--dir"]);
    std::fs::write(dir.path().join("file"), "").unwrap();
    fails(&run(dir.path(), &["bench", "copy", "--dir", "file", "--budget", "1s"]), 1, &["file", "ENOTDIR"]);
}

#[test]
fn an_unwritable_result_file_is_an_error_before_the_measurement() {
    let dir = disk_dir();
    let started = Instant::now();
    let output = run(dir.path(), &["bench", "copy", "--json", "absent/r.json", "--budget", "30s"]);
    fails(&output, 2, &["absent/r.json", "open", "ENOENT"]);
    assert!(started.elapsed() < Duration::from_secs(10), "weir measured before it reported the error");
    fails(&run(dir.path(), &["bench", "compare", "no.json", "no.json"]), 1, &["no.json", "ENOENT"]);
    std::fs::write(dir.path().join("bad.json"), "{}").unwrap();
    fails(&run(dir.path(), &["bench", "compare", "bad.json", "bad.json"]), 1, &["bad.json", "not a result"]);
}

#[test]
fn a_full_standard_output_is_an_error() {
    let dir = disk_dir();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let arguments =
        ["bench", "write", "--method", "syscall", "--records", "64K", "--size", "1MB", "--budget", "1s"];
    let output = weir(dir.path(), &arguments).stdout(full).output().unwrap();
    fails(&output, 1, &["standard output", "write"]);
    let output = run(dir.path(), &[&arguments[..], &["--quiet", "--json", "/dev/full"]].concat());
    fails(&output, 1, &["/dev/full", "ENOSPC"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// Runs `weir ARGUMENTS…` with a standard output that takes no byte.
fn run_to_full(dir: &Path, arguments: &[&str]) -> Output {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    weir(dir, arguments).stdout(full).output().expect("the built binary starts")
}

#[test]
fn a_full_standard_output_or_file_costs_no_other_result() {
    let dir = disk_dir();
    let measure =
        ["bench", "write", "--method", "syscall", "--records", "64K", "--size", "1MB", "--rounds", "3"];
    let files = ["--json", "a.json", "--csv", "a.csv", "--markdown", "a.md", "--html", "a.html"];
    let output = run_to_full(dir.path(), &[&measure[..], &files].concat());
    fails(&output, 1, &["weir: standard output: write: ENOSPC"]);
    let mut written = names(dir.path());
    written.sort();
    assert_eq!(written, ["a.csv", "a.html", "a.json", "a.md"]);
    let full_json = ["--quiet", "--json", "/dev/full", "--html", "b.html", "--csv", "/dev/full"];
    let output = run(dir.path(), &[&measure[..], &full_json].concat());
    fails(&output, 1, &["/dev/full: write: ENOSPC"]);
    let errors = text(&output.stderr);
    assert_eq!(errors.lines().filter(|line| line.starts_with("weir: /dev/full")).count(), 2, "{errors}");
    assert!(dir.path().join("b.html").exists(), "{errors}");
    for runs in [&["a.json", "a.json"][..], &["a.json", "a.json", "a.json"]] {
        let files = ["--json", "c.json", "--csv", "c.csv", "--markdown", "c.md", "--html", "c.html"];
        let output = run_to_full(dir.path(), &[&["bench", "compare"], runs, &files].concat());
        fails(&output, 1, &["weir: standard output: write: ENOSPC"]);
        for file in ["c.json", "c.csv", "c.md", "c.html"] {
            std::fs::remove_file(dir.path().join(file)).expect(file);
        }
    }
}

/// Runs `script` in a private mount namespace with a tmpfs of `size` on ./small. $1 is weir.
fn on_small_fs(dir: &Path, size: &str, script: &str) -> Output {
    let script = format!("mount -t tmpfs -o size={size} none small || exit 9; {script}");
    std::fs::create_dir(dir.join("small")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh", WEIR]).current_dir(dir);
    command.output().unwrap()
}

fn can_mount(test: &str) -> bool {
    let can = has_private_mounts();
    if !can {
        skip(test, "needs root and private mounts (unshare -m) for a small file system");
    }
    can
}

#[test]
fn too_little_space_is_an_error_before_the_measurement() {
    if !can_mount("too_little_space_is_an_error_before_the_measurement") {
        return;
    }
    let dir = disk_dir();
    let output = on_small_fs(
        dir.path(),
        "256k",
        "\"$1\" bench copy --dir small --size 8MB --budget 2s; s=$?; ls small; exit $s",
    );
    fails(&output, 1, &["small", "not enough space", "--size"]);
    assert_eq!(text(&output.stdout), "", "files are left behind");
}

#[test]
fn a_disk_that_fills_up_during_the_run_is_enospc_and_leaves_no_files() {
    if !can_mount("a_disk_that_fills_up_during_the_run_is_enospc_and_leaves_no_files") {
        return;
    }
    let dir = disk_dir();
    // From one second after weir's check on, another program fills the file system again and again.
    let script = "(sleep 1; for i in $(seq 100); do cat /dev/zero >>small/other 2>/dev/null; sleep 0.02; done) & \
                  \"$1\" bench copy --dir small --size 8MB --records 1K,64K --budget 30s --precision 0 --json r.json; \
                  s=$?; wait; ls -A small; exit $s";
    let output = on_small_fs(dir.path(), "32m", script);
    fails(&output, 1, &["write", "ENOSPC", "free some space"]);
    assert!(
        text(&output.stdout).trim_end().ends_with("other"),
        "only the other program's file is left: {}",
        text(&output.stdout)
    );
}

#[test]
fn a_read_only_file_system_is_erofs() {
    if !can_mount("a_read_only_file_system_is_erofs") {
        return;
    }
    let dir = disk_dir();
    let output = on_small_fs(
        dir.path(),
        "64m",
        "mount -o remount,ro small && \"$1\" bench copy --dir small --size 1MB --budget 1s",
    );
    fails(&output, 1, &["small", "mkdir", "EROFS", "read-only"]);
}

#[test]
fn a_file_size_limit_is_efbig() {
    let dir = disk_dir();
    let script =
        "ulimit -f 100; exec \"$1\" bench write --method syscall --records 4K --size 1MB --budget 1s";
    let output =
        Command::new("bash").args(["-c", script, "sh", WEIR]).current_dir(dir.path()).output().unwrap();
    fails(&output, 1, &["out", "write", "EFBIG", "ulimit -f"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn too_little_memory_is_an_error() {
    let dir = disk_dir();
    let huge = [
        "bench",
        "copy",
        "--method",
        "stdio",
        "--records",
        "4K",
        "--buffer",
        "100T",
        "--size",
        "1MB",
        "--budget",
        "1s",
    ];
    fails(&run(dir.path(), &huge), 1, &["not enough memory", "ENOMEM", "--buffer"]);
    let script =
        "ulimit -v 400000; exec \"$1\" bench copy --method syscall --records 600MiB --size 1MB --budget 1s";
    let output =
        Command::new("bash").args(["-c", script, "sh", WEIR]).current_dir(dir.path()).output().unwrap();
    fails(&output, 1, &["ENOMEM"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// Returns the child processes of `pid`: the sample processes of a run.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the samples of a weir bench, which are the children of its worker.
fn samples(bench: u32) -> Vec<u32> {
    children(bench).into_iter().flat_map(children).collect()
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

const LONG: [&str; 11] = [
    "bench",
    "copy",
    "--method",
    "syscall",
    "--records",
    "1",
    "--size",
    "50MB",
    "--exact",
    "--budget",
    "60s",
];

#[test]
fn a_killed_sample_is_named_with_its_signal() {
    let dir = disk_dir();
    let child = weir(dir.path(), &LONG).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // After 2 s the input and the pilot run are done, and the long sample runs.
    std::thread::sleep(Duration::from_secs(2));
    let sample = samples(child.id());
    assert!(!sample.is_empty(), "no sample runs");
    sample.iter().for_each(|&pid| signal(pid, rustix::process::Signal::KILL));
    let output = child.wait_with_output().unwrap();
    fails(&output, 1, &["copy syscall 1 B", "SIGKILL", "memory"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_stopped_run_ends_its_sample() {
    let dir = disk_dir();
    for how in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut child = weir(dir.path(), &LONG).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let samples = samples(child.id());
        assert!(!samples.is_empty(), "no sample runs");
        signal(child.id(), how);
        child.wait().unwrap();
        let started = Instant::now();
        while samples.iter().any(|pid| Path::new(&format!("/proc/{pid}/exe")).exists() && is_sample(*pid)) {
            assert!(started.elapsed() < Duration::from_secs(5), "the sample runs on without weir");
            std::thread::sleep(Duration::from_millis(20));
        }
        if how == rustix::process::Signal::TERM {
            assert_eq!(names(dir.path()), Vec::<String>::new());
        }
    }
}

fn is_sample(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| text(&line).contains("__bench-sample"))
}
