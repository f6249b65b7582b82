//! A process cannot hide its pending bytes, nor make weir read gigabytes, by its name, arguments or mappings.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, disk_dir, skip, text, weir};

/// The address space that weir may use, far less than the arguments have.
const SPACE: &str = "--as=800000000";

/// Starts the program with this trick; None if it cannot play it here.
fn start(test: &str, dir: &Path, trick: &str) -> Option<KillOnDrop> {
    if !compile_c("hostile/tricks", &[], dir) {
        skip(test, "gcc does not build its program");
        return None;
    }
    let mut command = Command::new(dir.join("tricks"));
    command.args([trick, "out"]).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = KillOnDrop(command.spawn().expect("it starts"));
    let mut line = String::new();
    let out = process.0.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    if line == "ready\n" {
        return Some(process);
    }
    skip(test, &format!("the kernel does not permit the trick '{trick}'"));
    None
}

/// Checks that peek shows the pending bytes, that trace ends, and that flush writes the bytes.
fn check(test: &str, trick: &str) {
    let dir = disk_dir();
    let Some(process) = start(test, dir.path(), trick) else { return };
    let pid = process.0.id().to_string();
    let limited = |arguments: &[&str]| {
        let weir = weir(dir.path(), arguments);
        let mut command = Command::new("prlimit");
        command
            .arg(SPACE)
            .args(["timeout", "-s", "KILL", "60"])
            .arg(weir.get_program())
            .args(weir.get_args());
        let output = command.current_dir(dir.path()).output().expect("prlimit(1)");
        assert!(output.status.success(), "{arguments:?}: {}: {}", output.status, text(&output.stderr));
        text(&output.stdout)
    };
    assert!(limited(&["peek", &pid]).contains("pending"));
    limited(&["trace", "--engine", "ptrace", "--time", "100ms", "-p", &pid]);
    limited(&["flush", &pid]);
    assert_eq!(fs::read(dir.path().join("out")).expect("its file"), b"pending");
}

#[test]
fn a_name_that_is_no_text_hides_nothing() {
    check("a_name_that_is_no_text_hides_nothing", "name");
}

#[test]
fn the_arguments_are_read_up_to_a_limit() {
    check("the_arguments_are_read_up_to_a_limit", "arguments");
}

#[test]
fn a_mapping_whose_name_is_no_text_hides_nothing() {
    check("a_mapping_whose_name_is_no_text_hides_nothing", "mapping");
}

/// The comparison of each descriptor with all others took minutes, in which weir handled no event.
#[test]
fn many_descriptors_of_one_inode_are_read_in_part() {
    check("many_descriptors_of_one_inode_are_read_in_part", "descriptors");
}
