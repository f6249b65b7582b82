//! `--fix-fork` where the file takes no bytes at the moment of the fork.

mod common;

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

use common::{BUILDS, assert_same, children, command_of, compile, folder, supervised, text, until};

/// Runs fork_full.c under weir and reads its standard output once `is_due` returns true. Returns the lines that begin with
/// "pending", and weir's standard error; None without a compiler.
fn run(is_due: impl Fn(&Child) -> bool) -> Option<(String, String)> {
    let folder = folder();
    let program = compile("fork_fix", BUILDS[0], "fork_full.c", folder.path())?;
    let mut command = supervised(&["--fix-fork"], &[text(&program)]);
    command.env("SUPERVISE_OUTCOME", "1");
    let mut weir = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    until("the reader begins", || is_due(&weir));
    let (mut out, mut errors) = (String::new(), String::new());
    weir.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    weir.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert!(weir.wait().expect("its end").success(), "{errors}");
    let lines = out.lines().filter(|line| line.starts_with("pending"));
    Some((lines.map(|line| format!("{line}\n")).collect(), errors))
}

/// Returns the process ID of the command's first child; None before its fork.
fn forked_child(weir: &Child) -> Option<u32> {
    children(command_of(weir)?).first().copied()
}

fn lines() -> String {
    (0..1000).map(|number| format!("pending {number}\n")).collect()
}

#[test]
fn bytes_for_a_late_reader_are_not_doubled() {
    let Some((got, errors)) = run(|weir| forked_child(weir).is_some()) else { return };
    assert_same("the output", lines().as_bytes(), got.as_bytes());
    assert!(errors.contains("limitations: []"), "{errors}");
}

#[test]
fn weir_says_what_is_doubled_if_the_reader_begins_after_the_limit() {
    // weir no longer waits for the full pipe and resumes the child, which then blocks in write(2).
    let is_writing = |child: u32| {
        let write = format!("{} ", libc::SYS_write);
        fs::read_to_string(format!("/proc/{child}/syscall")).is_ok_and(|call| call.starts_with(&write))
    };
    let Some((got, errors)) = run(|weir| forked_child(weir).is_some_and(is_writing)) else { return };
    assert_same("the output", lines().repeat(2).as_bytes(), got.as_bytes());
    assert!(errors.contains("fork_full") && errors.contains(&format!("{} bytes", lines().len())), "{errors}");
    assert!(errors.contains("can be written twice") && errors.contains("for pipe:["), "{errors}");
}
