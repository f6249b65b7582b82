//! weir keeps no copy of the command's descriptors: when the command closes one, the other end of the pipe sees it.

mod common;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::{WEIR, weir};

/// Every kind of run in which weir stays alive beside the command.
const RUNS: [&[&str]; 6] = [
    &["trace", "-q", "--engine", "auto", "--"],
    &["trace", "-q", "--engine", "ptrace", "--"],
    &["trace", "-q", "--engine", "sample", "--"],
    &["run", "--max-delay", "50ms", "--"],
    &["run", "--rescue", "--"],
    &["run", "--coalesce", "--"],
];

/// How long to wait for the other end of a pipe; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Returns a script that closes a descriptor, then waits for a line in the FIFO `go`.
fn script(close: &str) -> String {
    format!("exec {close}; read line < go; exit 7")
}

fn directory_with(fifos: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let made = Command::new("mkfifo").args(fifos).current_dir(dir.path()).status().expect("mkfifo");
    assert!(made.success());
    dir
}

/// Asserts that `observe` returns while the command still runs, then lets the command end.
fn assert_before_exit(
    dir: &Path,
    mut child: Child,
    options: &[&str],
    observe: impl FnOnce() + Send + 'static,
) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        observe();
        let _ = sender.send(());
    });
    let observed = receiver.recv_timeout(LIMIT);
    // Opened for reading too, so that open(2) does not wait for the command, and kept open until the command has ended:
    // a FIFO that no process has open loses its bytes.
    let go = OpenOptions::new().read(true).write(true).open(dir.join("go"));
    let mut go = go.expect("the FIFO");
    go.write_all(b"go\n").expect("the FIFO takes a line");
    assert_eq!(child.wait().expect("the child ends").code(), Some(7), "{options:?}");
    assert!(observed.is_ok(), "{options:?}: the command has closed it, another process has it open");
}

#[test]
fn standard_output_ends_when_the_command_closes_it() {
    for options in RUNS {
        let dir = directory_with(&["go"]);
        let mut child = weir(dir.path(), &[options, &["sh", "-c", &script(">&-")]].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("weir");
        let mut output = child.stdout.take().expect("a pipe");
        assert_before_exit(dir.path(), child, options, move || {
            let mut all = Vec::new();
            output.read_to_end(&mut all).expect("a pipe can be read");
            assert!(all.is_empty());
        });
    }
}

#[test]
fn standard_input_breaks_when_the_command_closes_it() {
    for options in RUNS {
        let dir = directory_with(&["go"]);
        let mut child = weir(dir.path(), &[options, &["sh", "-c", &script("<&-")]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("weir");
        let mut input = child.stdin.take().expect("a pipe");
        assert_before_exit(dir.path(), child, options, move || {
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
    for options in RUNS {
        let dir = directory_with(&["go", "further"]);
        let outer = "exec 3>further; exec \"$@\"";
        let child = Command::new("sh")
            .args(["-c", outer, "sh", WEIR])
            .args(options)
            .args(["sh", "-c", &script("3>&-")])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("sh");
        let further = dir.path().join("further");
        assert_before_exit(dir.path(), child, options, move || {
            let all = std::fs::read(further).expect("a pipe can be read");
            assert!(all.is_empty());
        });
    }
}

#[test]
fn weir_writes_to_standard_output_after_the_command_closed_it() {
    let dir = tempfile::tempdir().expect("a directory");
    for options in [&["trace", "-q", "--json", "-", "--"][..], &["run", "--rescue", "--json", "-", "--"]] {
        let output = weir(dir.path(), &[options, &["sh", "-c", "exec >&-"]].concat()).output().expect("weir");
        assert!(output.status.success(), "{options:?}: {}", common::text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(document["schema"].is_string(), "{options:?}");
    }
}

/// A descriptor that is closed when weir starts is closed in the command too, whatever weir opens with that number.
#[test]
fn descriptors_closed_at_the_start_are_closed_in_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    for options in RUNS {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" <&- >&-", "sh", WEIR]).args(options);
        command.args(["sh", "-c", "[ ! -e /proc/self/fd/0 ] && [ ! -e /proc/self/fd/1 ]"]);
        // `[` is a builtin, so /proc/self is the shell.
        let status = command.current_dir(dir.path()).arg0("sh").status().expect("sh");
        assert!(status.success(), "{options:?}: {status}");
    }
}
