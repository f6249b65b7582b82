//! Runs every verb once on the smallest real job. `make check` runs this file.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{disk_dir, names, run, text, wait_for};
use serde_json::Value;

/// Runs weir, requires success, and returns standard output.
fn stdout_of(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, text(&output.stderr));
    text(&output.stdout)
}

/// Runs weir with `--json -`, requires success and the schema, and returns the document.
fn json_of(dir: &Path, arguments: &[&str], schema: &str) -> Value {
    let document: Value = serde_json::from_str(&stdout_of(dir, arguments)).expect("JSON on standard output");
    assert_eq!(document["schema"], schema, "{arguments:?}");
    document
}

/// A grep that holds "hello\n" in its output buffer and waits for input; killed on drop.
struct BufferingGrep {
    child: Child,
    pid: String,
}

impl BufferingGrep {
    fn start(dir: &Path) -> BufferingGrep {
        let output = fs::File::create(dir.join("grep.out")).expect("a file");
        let mut child = Command::new("grep")
            .arg("hello")
            .stdin(Stdio::piped())
            .stdout(output)
            .spawn()
            .expect("grep starts");
        child.stdin.as_mut().expect("a pipe").write_all(b"hello\n").expect("grep reads");
        BufferingGrep { pid: child.id().to_string(), child }
    }
}

impl Drop for BufferingGrep {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn bench_measures_and_compares() {
    let dir = disk_dir();
    let arguments = ["bench", "write", "--method", "syscall", "--records", "4K", "--size", "64K"];
    let limits = ["--rounds", "2", "--budget", "1s", "--quiet", "--json", "a.json"];
    stdout_of(dir.path(), &[&arguments[..], &limits].concat());
    let document: Value = serde_json::from_slice(&fs::read(dir.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(
        (&document["schema"], &document["rows"][0]["record_bytes"]),
        (&"weir-bench/1".into(), &4096.into())
    );
    let compare = ["bench", "compare", "--json", "-", "a.json", "a.json"];
    json_of(dir.path(), &compare, "weir-bench-compare/1");
    assert!(stdout_of(dir.path(), &["bench", "--list"]).contains("syscall"));
    stdout_of(dir.path(), &["report", "a.json", "-o", "a.html"]);
    let json = fs::read_to_string(dir.path().join("a.json")).expect("a result");
    assert!(stdout_of(dir.path(), &["report", "--extract", "a.html"]) == json);
}

#[test]
fn trace_reports_streams_and_keeps_the_status() {
    let dir = disk_dir();
    let document = json_of(dir.path(), &["trace", "-q", "--json", "-", "--", "true"], "weir-trace/1");
    assert_eq!(document["command"][0], "true");
    let output = run(dir.path(), &["trace", "--engine", "ptrace", "--", "sh", "-c", "echo hi; exit 3"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), "hi\n"));
    assert!(text(&output.stderr).contains("weir: "), "{}", text(&output.stderr));
}

#[test]
fn run_keeps_output_and_status() {
    let dir = disk_dir();
    let output = run(dir.path(), &["run", "-oL", "--json", "run.json", "--", "sh", "-c", "echo hi; exit 3"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), "hi\n"));
    let document: Value = serde_json::from_slice(&fs::read(dir.path().join("run.json")).unwrap()).unwrap();
    assert_eq!(document["schema"], "weir-run/1");
    assert!(stdout_of(dir.path(), &["run", "--why=only", "--", "true"]).contains("true"));
}

#[test]
fn peek_shows_pending_bytes_and_flush_writes_them() {
    let dir = disk_dir();
    let grep = BufferingGrep::start(dir.path());
    wait_for("grep to buffer its output", || {
        stdout_of(dir.path(), &["peek", &grep.pid]).contains(r#""hello\n""#)
    });
    json_of(dir.path(), &["peek", "-q", "--json", "-", &grep.pid], "weir-peek/1");
    let document = json_of(dir.path(), &["flush", "--json", "-", &grep.pid], "weir-flush/1");
    assert_eq!(document["processes"][0]["streams"][0]["written_bytes"], 6);
    assert_eq!(fs::read_to_string(dir.path().join("grep.out")).unwrap(), "hello\n");
}

#[test]
fn copy_copies_a_file() {
    let dir = disk_dir();
    fs::write(dir.path().join("s"), "text").unwrap();
    let document = json_of(dir.path(), &["copy", "--json", "-", "s", "t"], "weir-copy/1");
    assert_eq!((&document["files"], &document["copied_bytes"]), (&1.into(), &4.into()));
    assert_eq!(fs::read_to_string(dir.path().join("t")).unwrap(), "text");
}

#[test]
fn doctor_says_what_works() {
    let dir = disk_dir();
    assert!(stdout_of(dir.path(), &["doctor"]).contains("ptrace"));
    let document = json_of(dir.path(), &["doctor", "--json", "-"], "weir-doctor/1");
    let abilities = document["abilities"].as_array().expect("abilities");
    assert!(abilities.iter().all(|one| one["works"] == one["advice"].is_null()), "{document}");
    assert_eq!(abilities[0]["works"], !document["hooks"].as_array().expect("hooks").is_empty());
}

#[test]
fn top_lists_a_process() {
    let dir = disk_dir();
    let grep = BufferingGrep::start(dir.path());
    let arguments = ["top", "--once", "-i", "100ms", "--pid", &grep.pid];
    assert!(stdout_of(dir.path(), &arguments).starts_with("top · 1 process"));
    let document = json_of(dir.path(), &[&arguments[..], &["-q", "--json", "-"]].concat(), "weir-top/1");
    assert_eq!(document["processes"][0]["comm"], "grep");
}

#[test]
fn lab_lists_shows_creates_and_runs_an_experiment() {
    let dir = disk_dir();
    assert!(stdout_of(dir.path(), &["lab"]).contains("doubled-at-fork"));
    assert!(stdout_of(dir.path(), &["lab", "doubled-at-fork", "--source"]).contains("fork"));
    assert!(stdout_of(dir.path(), &["lab", "check", "--list"]).contains("tail"));
    stdout_of(dir.path(), &["lab", "new", "mine"]);
    assert!(names(&dir.path().join("mine")).contains(&"lab.toml".into()));
    let document = json_of(dir.path(), &["lab", "./mine", "--quick", "-q", "--json", "-"], "weir-lab/1");
    assert_eq!(document["experiments"][0]["agrees"], true, "{document:#}");
}

#[test]
fn man_pages_and_completions_are_generated() {
    let dir = disk_dir();
    stdout_of(dir.path(), &["dist", "out"]);
    assert!(names(&dir.path().join("out/man")).contains(&"weir-trace.1".into()));
    assert!(names(&dir.path().join("out/completions")).contains(&"weir.bash".into()));
    assert!(stdout_of(dir.path(), &["--version"]).starts_with("weir "));
}
