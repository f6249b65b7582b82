//! `weir run --coalesce` with programs that pass buffers which they cannot access: results as without weir (EFAULT).
#![cfg(target_arch = "x86_64")] // --coalesce needs syscall user dispatch

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::programs::{self, PROGRAM, SOURCE};
use common::{disk_dir, run, skip, text};

/// Compiles the program; returns None, and notes a skip, without the compiler.
fn build(dir: &Path, compiler: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bad_buffers/program.c");
    let program = dir.join(compiler);
    let Ok(output) = programs::compile(compiler, &["-O1", "-w", "-o", PROGRAM, SOURCE], &source, &program)
    else {
        skip("run with bad buffers", &format!("{compiler} is not here"));
        return None;
    };
    assert!(output.status.success(), "{compiler}: {}", text(&output.stderr));
    Some(program)
}

fn compare(compiler: &str, calls: &str) {
    let dir = disk_dir();
    let Some(program) = build(dir.path(), compiler) else { return };
    let bare = Command::new(&program).arg(calls).current_dir(dir.path()).output().expect("the program");
    let lines = |output: &Output| text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(bare.status.success() && lines(&bare).iter().any(|line| line.contains("errno 14")));
    let path = program.to_str().expect("a path in UTF-8");
    for options in [&["--coalesce"][..], &["--coalesce=files"], &["--coalesce", "--rescue"]] {
        let words = [&["run", "--quiet"], options, &["--", path, calls]].concat();
        let output = run(dir.path(), &words);
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{compiler} {calls} {options:?}: {} {errors}", output.status);
        assert_eq!(lines(&output), lines(&bare), "{compiler} {calls} {options:?}");
    }
}

#[test]
fn calls_of_the_c_library_fail_as_without_weir() {
    compare("cc", "libc");
    compare("musl-gcc", "libc");
}

#[test]
fn syscall_instructions_fail_as_without_weir() {
    compare("cc", "raw");
}
