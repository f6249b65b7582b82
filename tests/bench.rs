//! `weir bench`: its measurements, screen, exports, comparison and published tables.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::schema::assert_schema;
use common::{bench, disk_dir, has, names, rows, run, skip, text, weir};
use serde_json::Value;

const QUICK: [&str; 4] = ["--size", "1MB", "--budget", "2s"];

fn median(row: &Value, figure: &str) -> f64 {
    row[figure]["median"].as_f64().unwrap_or_else(|| panic!("{figure} of {row}"))
}

#[test]
fn the_document_obeys_its_schema_and_counts_the_calls() {
    let dir = disk_dir();
    let arguments = ["copy", "--method", "syscall,stdio", "--records", "1,1000,65536"];
    let document = bench(dir.path(), &[&arguments[..], &QUICK].concat());
    assert_schema(&document, "weir-bench-1");
    let row = |method: &str, record: u64| {
        let found =
            rows(&document).iter().find(|row| row["method"] == method && row["record_bytes"] == record);
        found.unwrap_or_else(|| panic!("{method} {record}"))
    };
    assert_eq!(rows(&document).len(), 6);
    assert_eq!(row("syscall", 1000)["calls"]["write"], 1000);
    assert_eq!(row("syscall", 1)["calls"]["write"], 1_000_000);
    let calls = row("stdio", 1)["calls"]["write"].as_u64().unwrap();
    assert!((240..260).contains(&calls), "a 4096-byte buffer makes about 245 writes of 1 MB, not {calls}");
    assert!(rows(&document).iter().all(|row| row["verified"] == true));
    // The basic effect of buffering, far larger than any noise.
    assert!(median(row("syscall", 1), "elapsed_s") > 20.0 * median(row("syscall", 65536), "elapsed_s"));
    assert!(document["answers"].as_array().unwrap().len() >= 3);
    let gains = document["answers"].to_string();
    match document["knee_bytes"].as_u64() {
        Some(65536) => assert!(
            gains.contains("Not within the records measured") || gains.contains("no gain from"),
            "{gains}"
        ),
        knee => assert_eq!(knee, Some(1000)),
    }
    assert_eq!(names(dir.path()), Vec::<String>::new(), "files are left behind");
}

#[test]
fn every_method_runs_every_workload_or_reports_why_not() {
    let dir = disk_dir();
    let document = bench(
        dir.path(),
        &[
            "all",
            "--method",
            "all",
            "--records",
            "4096",
            "--mode",
            "none,full",
            "--size",
            "300KB",
            "--budget",
            "1s",
        ],
    );
    assert_schema(&document, "weir-bench-1");
    for method in [
        "syscall",
        "pread-pwrite",
        "vector",
        "stdio",
        "stdio-unlocked",
        "stdio-char",
        "stdio-char-unlocked",
        "mmap",
        "direct",
        "io_uring",
        "sendfile",
        "splice",
        "copy_file_range",
        "dontcache",
    ] {
        for workload in ["copy", "write", "read", "translate", "log"] {
            let found: Vec<_> = rows(&document)
                .iter()
                .filter(|row| row["method"] == method && row["workload"] == workload)
                .collect();
            assert!(!found.is_empty(), "{method} {workload} is missing");
            for row in found {
                let (measured, why) = (row["elapsed_s"].is_object(), row["cannot"].as_str());
                assert!(measured != why.is_some(), "{method} {workload}: {row}");
                assert!(
                    !measured || workload == "read" || row["verified"] == true,
                    "{method} {workload} is not verified"
                );
            }
        }
        let ever = rows(&document).iter().any(|row| row["method"] == method && row["elapsed_s"].is_object());
        assert!(ever || ["io_uring", "dontcache", "direct"].contains(&method), "{method} never ran");
    }
}

#[test]
fn every_sync_policy_has_its_own_time() {
    let dir = disk_dir();
    let document = bench(
        dir.path(),
        &[
            "write",
            "--method",
            "syscall,stdio",
            "--records",
            "4096",
            "--sync",
            "all",
            "--size",
            "64KiB",
            "--budget",
            "3s",
        ],
    );
    let row = |sync: &str, method: &str| {
        rows(&document)
            .iter()
            .find(|row| row["sync"] == sync && row["method"] == method)
            .unwrap_or_else(|| panic!("{sync}"))
    };
    assert_eq!(row("fsync", "syscall")["calls"]["fsync"], 16);
    assert_eq!(row("end", "syscall")["calls"]["fsync"], 1);
    assert_eq!(row("fdatasync", "stdio")["calls"]["fdatasync"], 16);
    assert!(median(row("fsync", "syscall"), "sync_s") > 0.0);
    assert_eq!(median(row("none", "syscall"), "sync_s"), 0.0);
    assert!(row("rwf_dsync", "stdio")["cannot"].is_string(), "stdio has no flags for a call");
    if let Some(dirty) = row("none", "syscall")["dirty_bytes"].as_u64() {
        assert!(dirty >= 60_000, "without a sync the data is only in memory: {dirty}");
        assert_eq!(row("fsync", "syscall")["dirty_bytes"], 0);
    }
    let answers = document["answers"].to_string();
    assert!(answers.contains("sync_file_range") && answers.contains("makes nothing durable"), "{answers}");
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let dir = disk_dir();
    let arguments = [
        "bench",
        "write",
        "--method",
        "syscall,stdio",
        "--records",
        "64,64K",
        "--size",
        "1MB",
        "--budget",
        "60s",
        "--precision",
        "0",
        "--json",
        "r.json",
    ];
    let mut command = weir(dir.path(), &arguments);
    let command = common::with_signals(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("64 KiB"), "{}", text(&output.stdout));
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(document["complete"], false);
    assert_eq!(names(dir.path()), ["r.json"]);
}

#[test]
fn all_exports_have_all_rows() {
    let dir = disk_dir();
    let arguments = ["bench", "copy", "--method", "syscall,sendfile,stdio-char", "--records", "512,4K"];
    let exports = ["--json", "r.json", "--csv", "r.csv", "--markdown", "r.md"];
    let output = run(dir.path(), &[&arguments[..], &QUICK, &exports].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let screen = text(&output.stdout);
    // On a busy machine the intervals can be too wide for a knee.
    assert!(["knee", "no gain"].iter().any(|word| screen.contains(word)), "{screen}");
    assert!(!screen.contains('\u{1b}'), "colour only on a terminal: {screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert_eq!(text(&output.stderr), "", "progress only on a terminal");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let document: Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(rows(&document).len(), 5);
    assert_eq!(read("r.csv").lines().count(), 6);
    for method in ["syscall", "sendfile", "stdio-char"] {
        assert!(
            screen.contains(method) && read("r.md").contains(method) && read("r.csv").contains(method),
            "{method}"
        );
    }
}

#[test]
fn a_terminal_gets_colour_and_progress_by_default() {
    if !has("script") {
        return skip("a_terminal_gets_colour_and_progress_by_default", "needs script(1)");
    }
    let dir = disk_dir();
    let on_terminal = |extra: &str, no_color: bool| {
        let line = format!(
            "{} bench write --method syscall --records 4K,64K --size 1MB --budget 1s {extra}",
            common::WEIR
        );
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .current_dir(dir.path())
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null());
        command.env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        text(&command.output().unwrap().stdout)
    };
    let coloured = on_terminal("", false);
    assert!(coloured.contains("\u{1b}[1m") && coloured.contains(" left"), "bold and a bar: {coloured:?}");
    let plain = on_terminal("", true);
    assert!(!plain.contains("\u{1b}[1m") && !plain.contains("\u{1b}[3"), "NO_COLOR: {plain:?}");
    assert_eq!(on_terminal("--quiet", false), "", "--quiet prints nothing");
}

#[test]
fn a_closed_standard_output_is_no_error() {
    let dir = disk_dir();
    let arguments =
        ["bench", "write", "--method", "syscall", "--records", "4K,64K", "--size", "1MB", "--budget", "1s"];
    let mut child =
        weir(dir.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn two_results_are_compared() {
    let dir = disk_dir();
    let arguments = ["bench", "write", "--method", "syscall", "--records", "64,64K", "--quiet"];
    for file in ["a.json", "b.json"] {
        let output = run(dir.path(), &[&arguments[..], &QUICK, &["--json", file]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let output = run(
        dir.path(),
        &["bench", "compare", "a.json", "b.json", "--json", "c.json", "--csv", "c.csv", "--markdown", "c.md"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let comparison: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("c.json")).unwrap()).unwrap();
    assert_schema(&comparison, "weir-bench-compare-1");
    assert_eq!(comparison["rows"].as_array().unwrap().len(), 2);
    let seeds = comparison["runs"].as_array().unwrap().iter().map(|run| run["seed"].as_u64());
    assert_eq!(seeds.flatten().count(), 2, "a run names its seed, also a new one");
    assert_eq!(std::fs::read_to_string(dir.path().join("c.csv")).unwrap().lines().count(), 3);
    assert!(std::fs::read_to_string(dir.path().join("c.md")).unwrap().contains("syscall"));
    let screen = text(&output.stdout);
    assert!(["tie", "faster", "slower"].iter().any(|verdict| screen.contains(verdict)), "{screen}");
    let other = run(dir.path(), &["bench", "compare", "a.json", "c.json"]);
    assert_eq!(other.status.code(), Some(1), "a comparison is not a bench result: {}", text(&other.stderr));
}

/// Compares the CPU time of a scaled row, measured before and after a whole one, with that of the whole one: other programs change the
/// wall-clock time between two runs, and by way of the caches also the CPU time. The intervals are those of the documents, widened by
/// the documents' own noise.
#[test]
fn a_scaled_row_agrees_with_the_whole_one_within_the_stated_intervals() {
    let dir = disk_dir();
    let arguments = ["write", "--method", "syscall", "--records", "64", "--size", "48MB", "--precision", "0"];
    let interval = |words: &[&str], is_scaled: bool| {
        let document = bench(dir.path(), &[&arguments[..], words].concat());
        let row = &rows(&document)[0];
        assert_eq!(row["extrapolated"], is_scaled);
        let noise = document["noise"]["cpu"].as_f64().unwrap_or(0.0).max(0.1);
        let end = |i: usize| row["cpu_s"]["ci95"][i].as_f64().unwrap();
        (end(0) * (1.0 - noise), end(1) * (1.0 + noise))
    };
    let before = interval(&["--budget", "1.5s"], true);
    let whole = interval(&["--budget", "4s", "--exact"], false);
    let after = interval(&["--budget", "1.5s"], true);
    let part = (before.0.min(after.0), before.1.max(after.1));
    assert!(
        part.0 <= whole.1 && whole.0 <= part.1,
        "the scaled row takes {part:?} s, the whole one {whole:?} s"
    );
}

#[test]
fn published_figures_are_compared_with_ours() {
    let dir = disk_dir();
    let document = bench(dir.path(), &["--published", "writers-100k,benchlogs", "--budget", "2s"]);
    let tables = document["published"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    for table in tables {
        assert!(
            table["rows"]
                .as_array()
                .unwrap()
                .iter()
                .all(|row| row["ours_s"].as_f64().is_some_and(|s| s > 0.0)),
            "{table}"
        );
        assert!(
            !table["verdict"].as_array().unwrap().is_empty() && !table["source"].as_str().unwrap().is_empty()
        );
    }
    assert_eq!(
        rows(&document).len(),
        2 + 4,
        "100,000 bytes by two methods, lines of two lengths in two modes"
    );
}

#[test]
fn the_list_names_methods_sync_caches_and_tables() {
    let dir = disk_dir();
    let listed = text(&run(dir.path(), &["bench", "--list"]).stdout);
    for word in
        ["copy1-copy2", "stdio-char-unlocked", "rwf_dsync", "NO durability", "cold", "btrfs", "tlpi-13-1"]
    {
        assert!(listed.contains(word), "{word}: {listed}");
    }
}
