//! Weir holds no end of the command's files: what the command closes is closed, for whoever is at the other end too.

mod common;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::{WEIR, weir};

/// Every way in which weir stays beside a command.
const WAYS: [&[&str]; 6] = [
    &["trace", "-q", "--engine", "auto", "--"],
    &["trace", "-q", "--engine", "ptrace", "--"],
    &["trace", "-q", "--engine", "sample", "--"],
    &["run", "--max-delay", "50ms", "--"],
    &["run", "--rescue", "--"],
    &["run", "--coalesce", "--"],
];

/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The command closes a descriptor, and then waits until it is told to go on.
fn script(close: &str) -> String {
    format!("exec {close}; read line < go; exit 7")
}

fn in_a_directory_with(fifos: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let made = Command::new("mkfifo").args(fifos).current_dir(dir.path()).status().expect("mkfifo");
    assert!(made.success());
    dir
}

/// Waits for `done` in a thread; then the command goes on to its end.
fn before_it_ends(dir: &Path, mut child: Child, way: &[&str], done: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        done();
        let _ = tell.send(());
    });
    let done = told.recv_timeout(PATIENCE);
    // For reading as well: it does not wait for the command to open it. And open until the end: a pipe that nobody has
    // open is empty.
    let go = OpenOptions::new().read(true).write(true).open(dir.join("go"));
    let mut go = go.expect("a pipe");
    go.write_all(b"go\n").expect("room in it");
    assert_eq!(child.wait().expect("its end").code(), Some(7), "{way:?}");
    assert!(done.is_ok(), "{way:?}: closed by the command, but still held");
}

#[test]
fn standard_output_ends_when_the_command_closes_it() {
    for way in WAYS {
        let dir = in_a_directory_with(&["go"]);
        let mut child = weir(dir.path(), &[way, &["sh", "-c", &script(">&-")]].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("weir");
        let mut output = child.stdout.take().expect("a pipe");
        before_it_ends(dir.path(), child, way, move || {
            let mut all = Vec::new();
            output.read_to_end(&mut all).expect("a pipe can be read");
            assert!(all.is_empty());
        });
    }
}

#[test]
fn standard_input_breaks_when_the_command_closes_it() {
    for way in WAYS {
        let dir = in_a_directory_with(&["go"]);
        let mut child = weir(dir.path(), &[way, &["sh", "-c", &script("<&-")]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("weir");
        let mut input = child.stdin.take().expect("a pipe");
        before_it_ends(dir.path(), child, way, move || {
            let error = loop {
                if let Err(error) = input.write_all(&[b'x'; 4096]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        });
    }
}

#[test]
fn a_further_descriptor_ends_when_the_command_closes_it() {
    for way in WAYS {
        let dir = in_a_directory_with(&["go", "further"]);
        let outer = "exec 3>further; exec \"$@\"";
        let child = Command::new("sh")
            .args(["-c", outer, "sh", WEIR])
            .args(way)
            .args(["sh", "-c", &script("3>&-")])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("sh");
        let further = dir.path().join("further");
        before_it_ends(dir.path(), child, way, move || {
            let all = std::fs::read(further).expect("a pipe can be read");
            assert!(all.is_empty());
        });
    }
}

#[test]
fn what_goes_to_standard_output_afterwards_still_comes() {
    let dir = tempfile::tempdir().expect("a directory");
    for way in [&["trace", "-q", "--json", "-", "--"][..], &["run", "--rescue", "--json", "-", "--"]] {
        let output = weir(dir.path(), &[way, &["sh", "-c", "exec >&-"]].concat()).output().expect("weir");
        assert!(output.status.success(), "{way:?}: {}", common::text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(document["schema"].is_string(), "{way:?}");
    }
}

/// A descriptor that weir was started without stays closed for the command, whatever weir has there itself.
#[test]
fn closed_ones_are_closed_for_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    for way in WAYS {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" <&- >&-", "sh", WEIR]).args(way);
        command.args(["sh", "-c", "[ ! -e /proc/self/fd/0 ] && [ ! -e /proc/self/fd/1 ]"]);
        // /proc/self is the shell that asks: `[` is its own.
        let status = command.current_dir(dir.path()).arg0("sh").status().expect("sh");
        assert!(status.success(), "{way:?}: {status}");
    }
}
