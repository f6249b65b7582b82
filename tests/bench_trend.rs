//! `weir bench compare` of several results, its threshold for CI, and the forms for other tools.

mod common;

use std::fs;
use std::path::Path;

use common::schema::assert_schema;
use common::{disk_dir, run, text};
use serde_json::Value;

/// Writes the result of a small run, and copies of it whose times are multiplied, a day apart each.
fn write_results(dir: &Path, factors: &[f64]) {
    let arguments = ["bench", "write", "--method", "syscall,stdio", "--records", "4K,64K", "--size", "256K"];
    let limits = ["--rounds", "5", "--budget", "5s", "--quiet", "--json", "-"];
    let output = run(dir, &[&arguments[..], &limits].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    fs::create_dir(dir.join("results")).expect("created");
    for (day, factor) in factors.iter().enumerate() {
        let mut document = measured.clone();
        document["started"] = format!("2026-01-{:02}T00:00:00Z", day + 1).into();
        // A known noise: the real one of five rounds on a busy machine may be larger than the step.
        document["noise"]["wall"] = 0.03.into();
        for row in document["rows"].as_array_mut().expect("rows") {
            // Close samples, so that the intervals decide nothing here.
            let median = row["elapsed_s"]["median"].as_f64().expect("a figure") * factor;
            let close = |number: usize| median * [0.999, 1.0, 1.001, 0.998, 1.002][number % 5];
            row["samples_s"] = (0..5).map(close).collect();
            row["elapsed_s"]["median"] = median.into();
            row["elapsed_s"]["ci95"] = vec![median * 0.998, median * 1.002].into();
        }
        let name = format!("results/day{}.json", day + 1);
        fs::write(dir.join(name), document.to_string()).expect("written");
    }
}

#[test]
fn a_directory_of_results_has_a_trend_with_its_change() {
    let dir = disk_dir();
    let dir = dir.path();
    write_results(dir, &[1.0, 1.01, 0.99, 1.3, 1.31]);
    // Other files in the directory are no results.
    fs::write(dir.join("results/notes.json"), "{}").expect("written");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("results/pipe.json"), mode).expect("a FIFO");
    let files = ["--json", "results/trend.json", "--html", "trend.html", "--csv", "trend.csv"];
    let output = run(dir, &[&["bench", "compare", "results", "--fail-on", "5%"], &files[..]].concat());
    assert!(output.status.success(), "the last run is as slow as the one before: {}", text(&output.stderr));
    let screen = text(&output.stdout);
    assert!(screen.contains(" 4 (1.3") && screen.contains("4 results/day4.json"), "{screen}");
    let trend: Value = serde_json::from_slice(&fs::read(dir.join("results/trend.json")).unwrap()).unwrap();
    assert_schema(&trend, "weir-bench-trend-1");
    for row in trend["rows"].as_array().expect("rows") {
        assert_eq!(row["changes"][0]["run"], 3, "{row}");
        assert_eq!(row["verdict"], "tie", "{row}");
        assert_eq!(row["points"].as_array().map(Vec::len), Some(5), "{row}");
    }
    let page = fs::read_to_string(dir.join("trend.html")).expect("a page");
    assert!(page.contains("Time over the runs") && page.contains("class=\"landmark\""));
    assert_eq!(fs::read_to_string(dir.join("trend.csv")).expect("a table").lines().count(), 1 + 4 * 5);
}

#[test]
fn runs_whose_intervals_overlap_have_no_change() {
    let dir = disk_dir();
    let dir = dir.path();
    write_results(dir, &[1.0, 1.002, 1.3]);
    let compare = || {
        let output = run(dir, &["bench", "compare", "results"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let clear = compare();
    assert!(clear.contains("Changes of level at some run: 4 rows."), "{clear}");
    for day in 1..=3 {
        let path = dir.join(format!("results/day{day}.json"));
        let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for row in document["rows"].as_array_mut().expect("rows") {
            let median = row["elapsed_s"]["median"].as_f64().expect("a figure");
            row["samples_s"] = [0.8, 0.9, 1.0, 1.1, 1.25].map(|factor| median * factor).to_vec().into();
            row["elapsed_s"]["ci95"] = vec![median * 0.8, median * 1.25].into();
        }
        fs::write(path, document.to_string()).expect("written");
    }
    let noisy = compare();
    assert!(noisy.contains("4 tied") && noisy.contains("Changes of level at some run: 0 rows."), "{noisy}");
}

#[test]
fn one_round_fails_no_ci_job() {
    let dir = disk_dir();
    let dir = dir.path();
    write_results(dir, &[1.0, 4.93]);
    let results = ["results/day1.json", "results/day2.json"];
    for result in results {
        let mut document: Value = serde_json::from_slice(&fs::read(dir.join(result)).unwrap()).unwrap();
        for row in document["rows"].as_array_mut().expect("rows") {
            row["samples_s"].as_array_mut().expect("samples").truncate(1);
        }
        fs::write(dir.join(result), document.to_string()).expect("written");
    }
    let output = run(dir, &[&["bench", "compare", "--fail-on", "5%"], &results[..]].concat());
    let (screen, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{screen}{error}");
    assert!(screen.contains("one round: no interval") && !screen.contains("slower\n"), "{screen}");
    assert!(error.contains("4 of 4 rows not judged") && error.contains("--budget"), "{error}");
}

#[test]
fn a_slower_result_fails_a_ci_job() {
    let dir = disk_dir();
    let dir = dir.path();
    write_results(dir, &[1.0, 1.0, 1.0, 1.2]);
    let compare = |arguments: &[&str]| run(dir, &[&["bench", "compare", "-q"], arguments].concat());
    let failed = compare(&["--fail-on", "5%", "results"]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let error = text(&failed.stderr);
    assert_eq!(error.matches("weir: slower by 20.0 %: write ").count(), 4, "{error}");
    assert_eq!(compare(&["--fail-on", "25", "results"]).status.code(), Some(0));
    let two = ["results/day1.json", "results/day4.json"];
    assert_eq!(compare(&[&["--fail-on", "5%"], &two[..]].concat()).status.code(), Some(1));
    assert_eq!(compare(&[&["--fail-on", "5%"], &[two[1], two[0]][..]].concat()).status.code(), Some(0));
    assert_eq!(compare(&two).status.code(), Some(0));
    assert_eq!(compare(&two[..1]).status.code(), Some(2));
    assert_eq!(compare(&[&["--fail-on", "much"], &two[..]].concat()).status.code(), Some(2));
}

#[test]
fn results_are_printed_for_other_tools() {
    let dir = disk_dir();
    let dir = dir.path();
    write_results(dir, &[1.0, 1.2]);
    let two = ["results/day1.json", "results/day2.json"];
    let printed = |format: &str| {
        let output = run(dir, &[&["bench", "compare", "--format", format], &two[..]].concat());
        assert!(output.status.success(), "{format}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for format in ["github-action-benchmark", "bencher", "otlp-json"] {
        let value: Value = serde_json::from_str(&printed(format)).expect("JSON alone");
        assert!(value.to_string().contains("syscall"), "{format}: {value}");
    }
    let metrics = printed("prometheus");
    assert_eq!(metrics.lines().filter(|line| line.starts_with("weir_bench_ratio{")).count(), 4, "{metrics}");
    let bench =
        ["bench", "write", "--method", "syscall", "--records", "4K", "--size", "64K", "--budget", "1s"];
    let output = run(dir, &[&bench[..], &["--rounds", "2", "--format", "prometheus"]].concat());
    assert!(
        text(&output.stdout).starts_with("# HELP weir_bench_elapsed_seconds "),
        "{}",
        text(&output.stdout)
    );
    let both = run(dir, &[&bench[..], &["--format", "bencher", "--json", "-"]].concat());
    assert_eq!(both.status.code(), Some(1), "{}", text(&both.stderr));
    assert!(text(&both.stderr).contains("--format prints to standard output"), "{}", text(&both.stderr));
}
