//! A process maps a file of a FUSE server that accepts reads and never answers: not even SIGKILL ends a read of it. weir
//! ends with a sentence all the same, and leaves no process stopped. With such a server of a file that is only open, weir observes the
//! process as any other.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::limited::{self, TIMEOUT, assert_no_hang, limited};
use common::{KillOnDrop, text, wait_for, wait_until_let_go, weir};

/// Builds the program, if this machine permits it. Returns a directory for its mount.
fn built(test: &str) -> Option<tempfile::TempDir> {
    limited::built(test, "unanswered", |dir| start(dir, &[]).is_some())
}

/// Starts the program; None if it is not permitted.
fn start(dir: &Path, more: &[&str]) -> Option<KillOnDrop> {
    let mut program = Command::new(dir.join("unanswered"));
    program.current_dir(dir).arg(dir.join("mount")).args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let running = KillOnDrop(child);
    (line == "ready\n").then_some(running)
}

/// Runs weir until it ends. A weir that hangs is killed and fails the test.
fn run_limited(dir: &Path, arguments: &[&str], input: Option<&str>) -> Output {
    run_until(dir, arguments, input, || {})
}

/// As [`run_limited`]. The input comes a second after `wait_for_program` has returned.
fn run_until(dir: &Path, arguments: &[&str], input: Option<&str>, wait_for_program: impl FnOnce()) -> Output {
    let mut child = limited(dir, arguments).spawn().expect("timeout(1)");
    let mut stdin = child.stdin.take().expect("a pipe");
    if let Some(input) = input {
        wait_for_program();
        // Most reads of weir are over by then; the result does not depend on it.
        std::thread::sleep(std::time::Duration::from_secs(1));
        stdin.write_all(input.as_bytes()).expect("it reads");
    }
    let output = child.wait_with_output().expect("its output");
    assert_no_hang(arguments, &output);
    output
}

#[test]
fn peek_flush_and_trace_end_with_a_sentence() {
    let Some(dir) = built("peek_flush_and_trace_end_with_a_sentence") else { return };
    let cases: [(&[&str], i32); 4] = [
        (&["peek"], 1),
        (&["flush"], 1),
        (&["trace", "--time", "1s", "--pid"], 0),
        (&["trace", "--engine", "ptrace", "--time", "1s", "--pid"], 0),
    ];
    for (arguments, status) in cases {
        let process = start(dir.path(), &[]).expect("it could start before");
        let pid = process.0.id().to_string();
        let output = run_limited(dir.path(), &[arguments, &[&pid]].concat(), None);
        let said = text(&output.stdout) + &text(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(
            said.contains(&format!("process {pid} (unanswered) does not answer")),
            "{arguments:?}: {said}"
        );
        wait_until_let_go(process.0.id());
    }
}

#[test]
fn a_command_goes_on() {
    let Some(dir) = built("a_command_goes_on") else { return };
    let mount = dir.path().join("mount").display().to_string();
    for options in [
        &["run", "--max-delay", "20ms"][..],
        &["run", "--rescue"],
        &["trace", "--engine", "ptrace"],
        &["trace"],
    ] {
        let output =
            run_limited(dir.path(), &[options, &["--", "./unanswered", &mount]].concat(), Some("\n"));
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(7), "{options:?}: {errors}");
        assert!(out.starts_with("ready\nagain\n"), "{options:?}: {out}");
    }
}

#[test]
fn the_other_files_of_a_process_with_a_silent_file_are_observed() {
    let Some(dir) = built("the_other_files_of_a_process_with_a_silent_file_are_observed") else { return };
    for engine in ["ptrace", "sample", "ebpf"] {
        if engine == "ebpf" && !common::is_root() {
            continue;
        }
        let process = start(dir.path(), &["files"]).expect("it could start before");
        let pid = process.0.id().to_string();
        let arguments =
            ["trace", "--engine", engine, "--time", "1s", "--json", "trace.json", "--pid", pid.as_str()];
        assert_observed(dir.path(), &run_limited(dir.path(), &arguments, None), engine, 0);
        let state = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        assert!(state.contains("TracerPid:\t0") && !state.contains("State:\tT"), "{engine}: {state}");

        let top = run_limited(
            dir.path(),
            &["top", "--once", "-q", "--json", "-", "-i", "200ms", "--pid", &pid],
            None,
        );
        assert!(top.status.success(), "{}", text(&top.stderr));
        let document: serde_json::Value = serde_json::from_slice(&top.stdout).expect("JSON");
        let own = document["processes"].as_array().expect("processes").iter();
        let own = own.filter(|one| one["pid"].as_u64() == pid.parse().ok()).collect::<Vec<_>>();
        assert!(own.len() == 1 && own[0]["unanswered"] == false, "{own:?}");
    }
}

#[test]
fn a_command_with_a_silent_file_is_observed() {
    let Some(dir) = built("a_command_with_a_silent_file_is_observed") else { return };
    let mount = dir.path().join("mount").display().to_string();
    for engine in ["ptrace", "sample", "ebpf"] {
        if engine == "ebpf" && !common::is_root() {
            continue;
        }
        let arguments =
            ["trace", "--engine", engine, "--json", "trace.json", "--", "./unanswered", &mount, "files"];
        let plain = dir.path().join("plain");
        let _first = std::fs::remove_file(&plain);
        let writes =
            || wait_for("a write to plain", || std::fs::metadata(&plain).is_ok_and(|file| file.len() > 0));
        assert_observed(dir.path(), &run_until(dir.path(), &arguments, Some("\n"), writes), engine, 7);
    }
}

/// Asserts that weir ended with this status and observed the writes to "plain" beside the silent file.
fn assert_observed(dir: &Path, output: &Output, engine: &str, status: i32) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{engine}: {errors}");
    let document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("trace.json")).expect("a document")).expect("JSON");
    let mut streams = document["streams"].as_array().expect("streams").iter();
    let plain = dir.join("plain").canonicalize().expect("the file").display().to_string();
    assert!(
        streams.any(|one| one["path"] == plain.as_str() && one["bytes"].as_u64() > Some(0)),
        "{engine}: {document:#}"
    );
}

#[test]
fn a_silent_file_as_standard_output_does_not_stop_weir() {
    let Some(dir) = built("a_silent_file_as_standard_output_does_not_stop_weir") else { return };
    let mount = dir.path().join("mount").display().to_string();
    let options: [&[&str]; 5] =
        [&["-oL"], &["--max-delay", "20ms"], &["--coalesce"], &["--rescue"], &["--fix-fork"]];
    for options in options {
        let run =
            weir(dir.path(), &[&["run"], options, &["--", "sh", "-c", "echo started >&2; exit 3"]].concat());
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", TIMEOUT, "./unanswered", &mount]).arg(run.get_program());
        let output = command.args(run.get_args()).current_dir(dir.path()).output().expect("timeout(1)");
        assert_eq!(output.status.code(), Some(3), "{options:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("started\n"), "{options:?}: {}", text(&output.stderr));
    }
}
