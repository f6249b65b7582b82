//! `weir report`: the built binary makes pages of its own results, gives the JSON back and refuses what it cannot show.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{disk_dir, names, run, text, weir};

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

/// Runs a verb with `--json` and `--html` and compares the page with that of weir report. `status` is the verb's.
fn assert_pages_agree(dir: &Path, arguments: &[&str], status: i32) {
    let at = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (options, command) = arguments.split_at(at);
    let files = ["--json", "page.json", "--html", "page.html"];
    let output = run(dir, &[options, &files, command].concat());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    let json = fs::read_to_string(dir.join("page.json")).expect("a result");
    let extracted = succeed(dir, &["report", "--extract", "page.html"]);
    assert!(extracted == json, "{arguments:?}: the page has another result");
    succeed(dir, &["report", "page.json", "-o", "other.html"]);
    let read = |name: &str| fs::read_to_string(dir.join(name)).expect("a page");
    assert!(read("page.html") == read("other.html") && read("page.html").contains("<svg"), "{arguments:?}");
    for name in ["page.json", "page.html", "other.html"] {
        fs::remove_file(dir.join(name)).expect("removed");
    }
}

#[test]
fn html_is_short_for_json_and_report() {
    let dir = disk_dir();
    let dir = dir.path();
    let bench = ["bench", "write", "--method", "syscall", "--records", "4K,64K", "--size", "256K"];
    assert_pages_agree(dir, &[&bench[..], &["--rounds", "2", "--budget", "2s", "--quiet"]].concat(), 0);
    assert_pages_agree(dir, &["trace", "--quiet", "--", "sh", "-c", "seq 2000 | wc -l"], 0);
    assert_pages_agree(dir, &["run", "--rescue", "--", "sh", "-c", "exit 3"], 3);
    fs::write(dir.join("a.log"), "one\ntwo\nthree\0\n").expect("written");
    assert_pages_agree(dir, &["log", "check", "a.log"], 1);
    assert_pages_agree(dir, &["copy", "a.log", "b.log"], 0);
    fs::write(dir.join("good.log"), "one\n").expect("written");
    let page = succeed(dir, &["log", "check", "good.log", "--html", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "only the page: {page}");
    let output = run(dir, &["trace", "--json", "-", "--html", "-", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn one_picture_is_an_svg_or_a_png_file() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::write(dir.join("a.log"), "one\ntwo\0\n").expect("written");
    run(dir, &["log", "check", "a.log", "--quiet", "--json", "a.json"]);
    let damage = ["report", "a.json", "--picture", "damage"];
    let svg = succeed(dir, &[&damage[..], &["--svg", "-"]].concat());
    assert!(svg.contains("Where the log is damaged") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(!svg.contains("var("), "{svg}");
    let output = run(dir, &[&damage[..], &["--png", "a.png", "--svg", "a.svg"]].concat());
    assert_eq!(fs::read_to_string(dir.join("a.svg")).expect("a picture"), svg);
    match output.status.success() {
        true => {
            let image = fs::read(dir.join("a.png")).expect("an image");
            assert!(image.starts_with(b"\x89PNG\r\n") && image.len() > 3000, "{} bytes", image.len());
        }
        false => {
            assert!(text(&output.stderr).contains("no font is installed"), "{}", text(&output.stderr));
        }
    }
    let output = run(dir, &["report", "a.json", "--picture", "x", "--svg", "b.svg"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("use one of: kinds, damage"), "{}", text(&output.stderr));
    assert!(!dir.join("b.svg").exists());
}

#[test]
fn open_hands_the_page_to_the_browser() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::write(dir.join("a.log"), "one\n").expect("written");
    let check = ["log", "check", "a.log", "--quiet", "--html", "page.html", "--open"];
    let with_opener = |script: &str| {
        let bin = dir.join("bin");
        let _ = fs::remove_dir_all(&bin);
        fs::create_dir(&bin).expect("created");
        if !script.is_empty() {
            let path = bin.join("xdg-open");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        let mut command = weir(dir, &check);
        command.env("PATH", &bin).output().expect("the built binary starts")
    };
    let opened = with_opener("echo \"$1\" >opened");
    assert!(opened.status.success(), "{}", text(&opened.stderr));
    let page = fs::read_to_string(dir.join("opened")).expect("the opener ran");
    assert!(fs::read_to_string(page.trim_end()).expect("a page").starts_with("<!DOCTYPE html>"), "{page}");
    for (script, expected) in [("exit 3", "xdg-open ended with exit status: 3"), ("", "not installed")] {
        let output = with_opener(script);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("the page is page.html"), "{}", text(&output.stderr));
    }
    let output = run(dir, &["log", "check", "a.log", "--html", "-", "--open"]);
    assert!(text(&output.stderr).contains("--open needs a file"), "{}", text(&output.stderr));
    assert_eq!(run(dir, &["log", "check", "a.log", "--open"]).status.code(), Some(2));
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
        ("{\"schema\":\"weir-lab/2\",\"experiments\":[]}", "weir-lab/2"),
        ("{\"schema\":\"weir-copy/1\",\"elapsed_s\":Infinity}", "not JSON"),
        ("{\"schema\":\"weir-run/1\",\"plan\":[]}", "missing field"),
        ("{\"schema\":\"weir-log-check/1\",\"log\":\"x\",\"bytes\":-1}", "not those of its schema"),
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
