//! No verb prints the escape sequences that a process has in its name and in the paths of its files.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, disk_dir, run, skip, text, weir};
use serde_json::Value;

/// The name that the program gives itself.
const NAME: &str = "a\u{1b}[31m\r\u{1b}]0;\u{7}";
const ESCAPED: &str = r"a\x1b[31m\r\x1b]0;\x07";

/// Builds the program; false without a compiler.
fn build(test: &str, dir: &Path) -> bool {
    let is_built = compile_c("hostile/names", &[], dir);
    if !is_built {
        skip(test, "gcc does not build its program");
    }
    is_built
}

/// Waits for the program's line.
fn wait_until_ready(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
}

fn assert_clean(what: &str, output: &Output) {
    for text in [text(&output.stdout), text(&output.stderr)] {
        let bad = text.chars().find(|letter| letter.is_control() && *letter != '\n');
        assert_eq!(bad, None, "{what}: {text:?}");
    }
}

#[test]
fn a_running_process_is_shown_with_escapes() {
    let dir = disk_dir();
    if !build("a_running_process_is_shown_with_escapes", dir.path()) {
        return;
    }
    let mut command = Command::new("./names");
    command.current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = KillOnDrop(command.spawn().expect("it starts"));
    wait_until_ready(&mut process.0);
    let pid = process.0.id().to_string();
    for arguments in [&["peek", &pid][..], &["top", "--once"], &["trace", "--time", "100ms", "-p", &pid]] {
        assert_clean(arguments[0], &run(dir.path(), arguments));
    }
    let output = run(dir.path(), &["peek", "--json", "-", &pid]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["processes"][0]["comm"], NAME, "JSON has the exact text");
    let output = run(dir.path(), &["flush", &pid]);
    assert_clean("flush", &output);
    let expected =
        format!(r"{ESCAPED} ({pid}): 7 B written to descriptor 3 ({}/o\x1b[2J\rp)", dir.path().display());
    assert_eq!(text(&output.stdout).trim_end(), expected);
}

#[test]
fn a_rescued_process_is_named_with_escapes() {
    let dir = disk_dir();
    if !build("a_rescued_process_is_named_with_escapes", dir.path()) {
        return;
    }
    let mut command = weir(dir.path(), &["run", "--rescue", "--", "./names"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    wait_until_ready(&mut child);
    child.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    let output = child.wait_with_output().expect("its end");
    assert_clean("run", &output);
    assert!(text(&output.stderr).contains(&format!("rescued 7 B of {ESCAPED}")), "{}", text(&output.stderr));
}
