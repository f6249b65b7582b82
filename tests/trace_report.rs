//! `weir trace` after the recording: the report, the output files, and the exit status.

mod common;

use std::path::Path;

use common::schema::assert_schema;
use common::{disk_dir, names, run, skip, text, weir};
use serde_json::{Value, json};

/// Returns a recording, as --record writes it, of a `tr` that reads and writes single bytes.
fn recording() -> Value {
    let mut sizes = vec![0u64; 2];
    sizes[1] = 5_000_000;
    let flow = |fd: i32, direction: &str, zeros: u64| {
        json!({
            "pid": 4711, "image": 0, "fd": fd, "file": fd, "direction": direction, "first_s": 0.1, "last_s": 2.9,
            "calls": 5_000_000 + zeros, "bytes": 5_000_000, "errors": 0, "again": 0, "zeros": zeros, "short": 0,
            "sizes": sizes, "asked": sizes, "asked_max": 1, "newline_ends": 0, "jumps": 0, "again_bytes": 0,
            "unaligned": 0, "in_kernel": 0, "syncs": 0, "seeks": 0, "exact": true
        })
    };
    let file = |id: u32, path: &str| {
        json!({
            "id": id, "path": path, "kind": "file", "dev": 1, "ino": id, "flags": 0, "opened_by": null,
            "block_bytes": 4096, "size_bytes": null, "pipe_bytes": null, "direct_align": null
        })
    };
    json!({
        "command": ["./tr2u", "a", "w"], "root": 4711, "engine": "ebpf", "engine_reason": "", "exact": true,
        "elapsed_s": 3.0, "exit": {"code": 0},
        "overhead": {
            "startup_s": 0.04, "watched_s": 3.0, "unwatched_s": 0.0, "seen_calls": 10_000_001, "lost_events": 0,
            "cost_s": 0.2
        },
        "blind": [],
        "prices": {
            "file_read_ns": 200.0, "file_write_ns": 350.0, "page_write_ns": 2500.0, "pipe_ns": 300.0,
            "call_ns": 100.0, "byte_ns": 0.2, "again_byte_ns": 0.02, "piped_byte_ns": 0.6, "sync_ns": 600_000.0, "buffered_byte_ns": 2.0,
            "gathered_call_ns": 4.0, "copied_byte_ns": 0.05, "signal_ns": 500.0
        },
        "processes": [{
            "pid": 4711, "parent": null,
            "images": [{"started_s": 0.0, "exe": "/tmp/tr2u", "comm": "tr2u", "argv": ["./tr2u", "a", "w"]}],
            "started_s": 0.0, "ended_s": 3.0, "exit": {"code": 0}, "user_s": 0.3, "system_s": 2.5, "io": null, "threads": 1
        }],
        "files": [file(0, "/tmp/in"), file(1, "/tmp/out")],
        "flows": [flow(0, "in", 1), flow(1, "out", 0)],
        "events": [{"at_s": 3.0, "pid": 4711, "tid": 4711, "what": {"exit": {"code": 0}}}]
    })
}

fn write_recording(dir: &Path) {
    std::fs::write(dir.join("r.json"), recording().to_string()).unwrap();
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_replayed_recording_is_shown_on_standard_error() {
    let dir = disk_dir();
    write_recording(dir.path());
    let output = run(dir.path(), &["trace", "--replay", "r.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "standard output is not empty");
    let screen = text(&output.stderr);
    assert!(screen.starts_with("weir: "), "{screen}");
    for word in ["tr2u 4711", "5,000,001", "/tmp/in", "engine ebpf", "every call counted"] {
        assert!(screen.contains(word), "{word}: {screen}");
    }
    assert!(!screen.contains('\u{1b}'), "no colour into a pipe");
    assert!(run(dir.path(), &["trace", "-q", "--replay", "r.json"]).stderr.is_empty());
}

#[test]
fn json_obeys_its_schema_on_standard_output_and_in_a_file() {
    let dir = disk_dir();
    write_recording(dir.path());
    let output = run(dir.path(), &["trace", "--quiet", "--json", "-", "--replay", "r.json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert_schema(&document, "weir-trace-1");
    assert_eq!(document["schema"], "weir-trace/1");
    assert_eq!(document["streams"][1]["sizes"], json!({"1": 5_000_000}));
    assert_eq!(document["streams"][1]["mode"], "none");
    run(dir.path(), &["trace", "--quiet", "--json", "t.json", "--replay", "r.json"]);
    assert_eq!(read_json(&dir.path().join("t.json")), document);
}

#[test]
fn screen_timeline_and_recording_go_to_files() {
    let dir = disk_dir();
    write_recording(dir.path());
    let arguments =
        ["trace", "-o", "screen", "--timeline", "time.json", "--record", "again.json", "--replay", "r.json"];
    let output = run(dir.path(), &arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert!(std::fs::read_to_string(dir.path().join("screen")).unwrap().starts_with("weir: "));
    assert!(!read_json(&dir.path().join("time.json"))["traceEvents"].as_array().unwrap().is_empty());
    assert_eq!(read_json(&dir.path().join("again.json")), recording());
}

#[test]
fn a_full_disk_is_an_error() {
    if !Path::new("/dev/full").exists() {
        return skip("a_full_disk_is_an_error", "no /dev/full");
    }
    let dir = disk_dir();
    write_recording(dir.path());
    let output =
        run(dir.path(), &["trace", "--json", "/dev/full", "--timeline", "t.json", "--replay", "r.json"]);
    assert_eq!(output.status.code(), Some(125));
    let errors = text(&output.stderr);
    assert!(errors.contains("/dev/full: write: ENOSPC"), "{errors}");
    assert!(errors.contains("tr2u 4711"), "the report is missing: {errors}");
    assert!(dir.path().join("t.json").exists(), "the other file is missing");
}

#[test]
fn wrong_usage_is_explained() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("bad.json"), "{}").unwrap();
    for (arguments, status, words) in [
        (&["trace"][..], 2, "COMMAND"),
        (&["trace", "--pid", "0"], 2, "0"),
        (&["trace", "--pid", "1", "true"], 2, "cannot be used with"),
        (&["trace", "--time", "0s", "true"], 2, "0: use a longer time"),
        (&["trace", "--engine", "magic", "true"], 2, "magic"),
        (&["trace", "--bogus", "true"], 2, "--bogus"),
        (&["trace", "--json", "-", "--timeline", "-", "true"], 2, "standard output"),
        (&["trace", "--replay", "missing.json"], 125, "missing.json: read: ENOENT"),
        (&["trace", "--replay", "bad.json"], 125, "bad.json: not a recording"),
        (&["trace", "--json", "no/such/file", "true"], 125, "no/such/file: open: ENOENT"),
    ] {
        let output = run(dir.path(), arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    assert_eq!(names(dir.path()), ["bad.json"], "a file is left without a result");
}

#[test]
fn colour_is_never_forced_into_a_file() {
    let dir = disk_dir();
    write_recording(dir.path());
    let mut command = weir(dir.path(), &["trace", "-o", "screen", "--replay", "r.json"]);
    command.env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!std::fs::read_to_string(dir.path().join("screen")).unwrap().contains('\u{1b}'));
}

#[test]
fn recordings_of_every_engine_obey_the_schema_and_replay_equally() {
    let dir = disk_dir();
    for engine in ["ebpf", "ptrace", "sample"] {
        let arguments = ["--json", "t.json", "--record", "r.json", "--timeline", "time.json"];
        let command = ["--", "sh", "-c", "seq 1 20000 | sort | tail -n 1; exit 3"];
        let output =
            run(dir.path(), &[&["trace", "--engine", engine][..], &arguments[..], &command[..]].concat());
        if output.status.code() == Some(125) {
            skip("recordings_of_every_engine_obey_the_schema_and_replay_equally", &text(&output.stderr));
            continue;
        }
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), "9999\n".into()), "{engine}");
        assert!(text(&output.stderr).starts_with("weir: "), "{}", text(&output.stderr));
        let document = read_json(&dir.path().join("t.json"));
        assert_schema(&document, "weir-trace-1");
        assert_eq!((&document["engine"], &document["exit"]), (&engine.into(), &json!({"code": 3})));
        assert_eq!(document["command"].as_array().unwrap().len(), 3);
        assert!(read_json(&dir.path().join("time.json"))["traceEvents"].as_array().unwrap().len() > 3);
        let again = run(dir.path(), &["trace", "-q", "--json", "-", "--replay", "r.json"]);
        assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), document, "{engine}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_the_status_of_env() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("plain"), "text").unwrap();
    for (command, status, words) in [("./nothing", 127, "ENOENT"), ("./plain", 126, "EACCES")] {
        let output = run(dir.path(), &["trace", "--engine", "ptrace", "--json", "t.json", "--", command]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(errors.contains(command) && errors.contains(words), "{errors}");
    }
    assert_eq!(names(dir.path()), ["plain"]);
}
