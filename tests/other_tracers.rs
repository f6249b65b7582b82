//! Programs that trace others, such as debuggers and strace, work under weir as without it. weir says what it does not follow.

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::limited::{assert_no_hang, limited};
use common::{disk_dir, has, programs, skip, text};

/// The words that weir says of a process from which it has detached.
const SENTENCE: &str = "traced by another program";

/// Returns the ways in which weir follows a command here.
fn ways() -> Vec<Vec<&'static str>> {
    let runs = ["--max-delay=20ms", "--rescue", "--fix-fork", "--coalesce"].map(|option| vec!["run", option]);
    let engines: &[&str] =
        if common::is_root() { &["ptrace", "sample", "ebpf"] } else { &["ptrace", "sample"] };
    let traces = engines.iter().map(|engine| vec!["trace", "-q", "--engine", engine]);
    runs.into_iter().chain(traces).collect()
}

/// Returns the output of a command, which the test itself limits.
fn alone(dir: &Path, command: &[&str]) -> Output {
    let mut alone = Command::new(command[0]);
    alone.args(&command[1..]).current_dir(dir).stdin(Stdio::null());
    alone.output().expect("the command")
}

/// Asserts that a command gives the same output and status with each way as alone. Numbers of processes in the output differ.
fn assert_same(dir: &Path, command: &[&str], ways: &[Vec<&str>]) {
    let without_pid = |output: &Output| {
        let lines = text(&output.stdout);
        let kept = lines.lines().filter(|line| !line.starts_with("[Inferior 1 (process"));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    let expected = alone(dir, command);
    for way in ways {
        let arguments = [&way[..], &["--"], command].concat();
        let output = limited(dir, &arguments).stdin(Stdio::null()).output().expect("timeout(1)");
        assert_no_hang(&arguments, &output);
        assert_eq!(output.status.code(), expected.status.code(), "{arguments:?}: {output:?}");
        assert_eq!(without_pid(&output), without_pid(&expected), "{arguments:?}: {}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(way[0] == "trace" || said.matches(SENTENCE).count() == 1, "{arguments:?}: {said}");
        assert!(!said.contains("may be lost"), "{arguments:?}: {said}");
    }
}

/// Builds the program; None if there is no compiler.
fn tracer(test: &str) -> Option<tempfile::TempDir> {
    let dir = disk_dir();
    let built = programs::compile_c("environments/tracer", &[], dir.path());
    if !built {
        skip(test, "gcc does not build its program");
    }
    built.then_some(dir)
}

#[test]
fn a_program_traces_its_child() {
    let Some(dir) = tracer("a_program_traces_its_child") else { return };
    for way in ["traceme", "seize", "attach"] {
        assert_eq!(alone(dir.path(), &["./tracer", way]).status.code(), Some(7), "{way}");
        assert_same(dir.path(), &["./tracer", way], &ways());
    }
}

#[test]
fn a_static_program_traces_its_child() {
    for flags in [&["-static-pie"][..], &["-static", "-s"], &["-static-pie", "-s"]] {
        let dir = disk_dir();
        if !programs::compile_c("environments/tracer", flags, dir.path()) {
            return skip("a_static_program_traces_its_child", "gcc does not build its program");
        }
        // No library can be loaded into a static program.
        let some = ways().into_iter().filter(|way| !way.contains(&"--coalesce"));
        assert_same(dir.path(), &["./tracer", "traceme"], &some.collect::<Vec<_>>());
    }
}

#[test]
fn a_library_traces_a_child() {
    let test = "a_library_traces_a_child";
    let dir = disk_dir();
    let library = dir.path().join("tracer").display().to_string();
    let is_built =
        programs::compile_c("environments/tracer", &["-shared", "-fPIC", "-Dmain=tracer_main"], dir.path())
            && programs::compile_c("environments/library_tracer", &[&library], dir.path());
    if !is_built {
        return skip(test, "gcc does not build its program");
    }
    for way in ["traceme", "seize", "attach"] {
        assert_eq!(alone(dir.path(), &["./library_tracer", way]).status.code(), Some(7), "{way}");
        assert_same(dir.path(), &["./library_tracer", way], &ways());
    }
}

#[test]
fn a_child_traces_the_command_itself() {
    let Some(dir) = tracer("a_child_traces_the_command_itself") else { return };
    let expected = alone(dir.path(), &["./tracer", "parent"]);
    if expected.status.code() != Some(6) {
        return skip("a_child_traces_the_command_itself", "this kernel lets no child trace its parent");
    }
    assert_same(dir.path(), &["./tracer", "parent"], &ways());
}

#[test]
fn a_debugger_works() {
    if !has("gdb") {
        return skip("a_debugger_works", "gdb is missing");
    }
    let Some(dir) = tracer("a_debugger_works") else { return };
    let debugger = ["gdb", "-nx", "-batch", "-ex", "run", "--args", "./tracer"];
    assert_eq!(alone(dir.path(), &debugger).status.code(), Some(0));
    // A start of gdb takes most of a second. The ways that are left out follow a command as these do.
    let some = |way: &Vec<&str>| !matches!(way.last(), Some(&"--rescue" | &"--fix-fork" | &"sample"));
    assert_same(dir.path(), &debugger, &ways().into_iter().filter(some).collect::<Vec<_>>());
}

/// weir records nothing more of them, so it does not know whether something is wrong.
#[test]
fn a_verdict_does_not_include_processes_that_another_program_traces() {
    let test = "a_verdict_does_not_include_processes_that_another_program_traces";
    if !has("strace") {
        return skip(test, "strace is missing");
    }
    let dir = disk_dir();
    let command = ["trace", "--engine", "ptrace", "--", "strace", "-f", "-o", "calls", "true"];
    let output = limited(dir.path(), &command).stdin(Stdio::null()).output().expect("timeout(1)");
    let said = text(&output.stderr);
    assert!(said.contains(SENTENCE) && !said.contains("Nothing is wrong"), "{said}");
    assert!(said.contains("Nothing wrong in what could be seen; \"not seen\" below"), "{said}");
}

#[test]
fn strace_works() {
    if !has("strace") {
        return skip("strace_works", "strace is missing");
    }
    let Some(dir) = tracer("strace_works") else { return };
    let command = ["strace", "-f", "-o", "calls", "sh", "-c", "echo one; (echo two); exit 3"];
    assert_eq!(alone(dir.path(), &command).status.code(), Some(3));
    assert_same(dir.path(), &command, &ways());
    let calls = std::fs::read_to_string(dir.path().join("calls")).expect("the calls");
    assert!(calls.contains("write(1, \"one"), "{calls}");
}

/// A tracer makes each call of weir a hundred times as expensive. Prices from such a run would last for weeks.
#[test]
fn prices_that_a_tracer_made_are_not_kept() {
    if !has("strace") {
        return skip("prices_that_a_tracer_made_are_not_kept", "strace is not installed");
    }
    let dir = disk_dir();
    let cache = dir.path().join("cache");
    let call_ns = |before: &[&str]| {
        let words = [common::WEIR, "trace", "-q", "--engine", "sample", "--json", "t.json", "--", "true"];
        let words = [before, &words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(dir.path()).env("XDG_CACHE_HOME", &cache).stdin(Stdio::null());
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        let document = std::fs::read(dir.path().join("t.json")).expect("the document");
        let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
        document["prices"]["call_ns"].as_f64().expect("a price")
    };
    call_ns(&["strace", "-f", "-o", "/dev/null"]);
    let prices = cache.join("weir/prices.json");
    assert!(!prices.exists(), "{}", std::fs::read_to_string(&prices).unwrap_or_default());
    let right = call_ns(&[]);
    // An entry of an earlier weir, or of an emulator.
    let entries = std::fs::read_to_string(&prices).expect("the cache");
    let entries = entries.replace(&format!("\"call_ns\": {right}"), "\"call_ns\": 38632.0");
    assert!(entries.contains("38632.0"), "{right}: {entries}");
    std::fs::write(&prices, entries).expect("the cache");
    assert!(call_ns(&[]) < 20_000.0);
    let entries = std::fs::read_to_string(&prices).expect("the cache");
    assert!(!entries.contains("38632.0"), "{entries}");
}
