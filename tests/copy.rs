//! `weir copy` as a user runs it: bytes and attributes equal to cp's, failures that leave nothing half, durability.

mod common;

#[path = "copy/as_cp.rs"]
mod as_cp;
#[path = "copy/devices.rs"]
mod devices;
#[path = "copy/durable.rs"]
mod durable;
#[path = "copy/failing_devices.rs"]
mod failing_devices;
#[path = "copy/failures.rs"]
mod failures;
#[path = "copy/job_control.rs"]
mod job_control;
#[path = "copy/options.rs"]
mod options;
#[path = "copy/promises.rs"]
mod promises;
#[path = "copy/resume.rs"]
mod resume;
#[path = "copy/standard_input.rs"]
mod standard_input;
#[path = "copy/sync_everything.rs"]
mod sync_everything;
#[path = "copy/trees.rs"]
mod trees;

use std::path::Path;
use std::process::{Command, Output};

use common::{run, text};

/// Runs `weir copy ARGUMENTS…` and requires success.
fn copy(dir: &Path, arguments: &[&str]) -> Output {
    let output = run(dir, &[&["copy"], arguments].concat());
    assert!(output.status.success(), "copy {arguments:?}: {}\n{}", output.status, text(&output.stderr));
    output
}

/// Runs `weir copy ARGUMENTS…`, requires status 1, and returns standard error.
fn failed_copy(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, &[&["copy"], arguments].concat());
    assert_eq!(output.status.code(), Some(1), "copy {arguments:?}: {}", text(&output.stderr));
    text(&output.stderr)
}

/// Runs a shell script in `dir`, requires success, and returns standard output.
fn shell(dir: &Path, script: &str) -> String {
    let output = Command::new("bash").args(["-ec", script]).current_dir(dir).output().expect("bash");
    assert!(output.status.success(), "{script}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the text of a terminal that a script of bash has.
fn on_terminal(dir: &Path, script: &str) -> String {
    std::fs::write(dir.join("script"), script).expect("a script");
    shell(dir, "timeout 60 script -qec 'bash script' /dev/null </dev/null | tr '\\r' '\\n'")
}
