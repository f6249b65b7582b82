//! The standard output of Rust: its number of pending bytes is in memory while no thread writes, also with the whole library
//! optimized together. The buffer is behind a RefCell that other threads can reach, so the compiler keeps nothing of it in registers
//! across a system call, except while the RefCell is borrowed: then the call is the write itself, which flush waits for.

use std::process::Command;

use crate::common::text;
use crate::flush;
use crate::programs::{Program, built};

#[test]
fn the_standard_output_of_rust_is_flushed() {
    let builds = [&[][..], &["-Clto=fat", "-Cpanic=abort", "-Ccodegen-units=1"]];
    for (flags, arguments) in builds.into_iter().flat_map(|flags| [(flags, &[][..]), (flags, &["free"])]) {
        let Some(path) = built("the_standard_output_of_rust_is_flushed", "rustc", flags, "waits.rs") else {
            return;
        };
        let mut program = Program::start(Command::new(path).args(arguments));
        let output = flush(&program, &[]);
        let what = format!("{flags:?} {arguments:?}: {}", text(&output.stderr));
        assert!(output.status.success(), "{what}");
        assert_eq!(program.out(), "one\ntwo", "{what}");
        assert_eq!(program.end(), Some(0), "{what}");
        assert_eq!(program.out(), "one\ntwo end\n", "{what}");
    }
}

#[test]
fn a_buf_writer_of_rust_is_left_with_the_reason() {
    let Some(path) = built("a_buf_writer_of_rust_is_left_with_the_reason", "rustc", &["-g"], "waits.rs")
    else {
        return;
    };
    let mut program = Program::start(Command::new(path).arg("writer"));
    let output = flush(&program, &[]);
    let errors = text(&output.stderr);
    let is_explained = errors.contains("in a register") && errors.contains("--max-delay");
    assert!(output.status.code() == Some(1) && is_explained, "{errors}");
    assert_eq!(program.out(), "");
    assert_eq!(program.end(), Some(0));
    assert_eq!(program.out(), "one\ntwo end\n");
}
