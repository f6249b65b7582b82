//! `weir report`: the built binary makes pages of its own results, gives the JSON back and refuses what it cannot show.

mod common;

use std::fs;
use std::path::Path;

use common::{disk_dir, names, run, text};

/// Writes the results of a small bench and a small trace, and their pages.
fn make_pages(dir: &Path) {
    let bench = ["bench", "copy", "--method", "syscall,stdio", "--records", "64,4K,64K", "--size", "256K"];
    let limits = ["--rounds", "3", "--budget", "5s", "--quiet", "--json", "bench.json"];
    succeed(dir, &[&bench[..], &limits].concat());
    succeed(dir, &["bench", "compare", "--quiet", "--json", "compare.json", "bench.json", "bench.json"]);
    let reads = "seq 2000 | while read line; do :; done";
    succeed(dir, &["trace", "--quiet", "--json", "trace.json", "--", "sh", "-c", reads]);
    for name in ["bench", "compare", "trace"] {
        succeed(dir, &["report", &format!("{name}.json"), "-o", &format!("{name}.html")]);
    }
}

fn succeed(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn pages_of_real_results_have_pictures_and_give_the_json_back() {
    let dir = disk_dir();
    make_pages(dir.path());
    for name in ["bench", "compare", "trace"] {
        let page = fs::read_to_string(dir.path().join(format!("{name}.html"))).expect("a page");
        assert!(page.contains("<svg") && page.contains("default-src 'none'"), "{name}");
        let json = fs::read_to_string(dir.path().join(format!("{name}.json"))).expect("a result");
        assert!(succeed(dir.path(), &["report", "--extract", &format!("{name}.html")]) == json, "{name}");
    }
    let all = ["report", "bench.json", "trace.json", "compare.json", "-o", "all.html"];
    succeed(dir.path(), &all);
    succeed(dir.path(), &["report", "--extract", "all.html", "--number", "2", "-o", "second.json"]);
    let read = |name: &str| fs::read(dir.path().join(name)).expect("a file");
    assert!(read("second.json") == read("trace.json"));
    let output = run(dir.path(), &["report", "--extract", "all.html", "--number", "4"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("it has 3 results"), "{}", text(&output.stderr));
}

#[test]
fn bad_input_gets_an_error_and_leaves_no_page() {
    let dir = disk_dir();
    fs::write(dir.path().join("latin1.json"), b"{\"schema\":\"\xe4\"}").expect("written");
    let long = format!("{{\"schema\":\"weir-bench/1\",\"command\":[\"{}\"]}}", "x".repeat(10_000_000));
    for (content, expected) in [
        ("", "cut off"),
        ("{\"schema\":\"weir-bench/1\",\"rows\":[", "cut off"),
        ("{\"schema\":\"weir-trace/1\",\"elapsed_s\":NaN}", "not JSON"),
        ("{\"schema\":\"weir-bench/9\"}", "weir-bench/9"),
        ("{\"jobs\":[{\"jobname\":\"fio\"}]}", "not a result of weir"),
        (&long, "10000000 bytes"),
    ] {
        fs::write(dir.path().join("bad.json"), content).expect("written");
        let output = run(dir.path(), &["report", "bad.json", "-o", "page.html"]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with("weir: bad.json: ") && error.contains(expected), "{error}");
        assert!(error.contains("'weir bench --json'"), "no advice: {error}");
    }
    for (arguments, status, expected) in [
        (&["report", "latin1.json", "-o", "page.html"][..], 1, "not UTF-8"),
        (&["report", "missing.json", "-o", "page.html"], 1, "ENOENT"),
        (&["report", "latin1.json"], 2, "--output"),
        (&["report", "-o", "page.html"], 2, "FILE"),
        (&["report", "--extract", "bad.json"], 1, "not a page of weir report"),
    ] {
        let output = run(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
    let mut left = names(dir.path());
    left.sort();
    assert_eq!(left, ["bad.json", "latin1.json"]);
}

#[test]
fn a_page_replaces_the_old_one_only_if_it_is_whole() {
    let dir = disk_dir();
    fs::write(dir.path().join("page.html"), "old").expect("written");
    fs::write(dir.path().join("bad.json"), "{").expect("written");
    assert_eq!(run(dir.path(), &["report", "bad.json", "-o", "page.html"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(dir.path().join("page.html")).expect("a page"), "old");
}
