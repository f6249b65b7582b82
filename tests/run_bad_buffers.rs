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

/// The sum of the lengths exceeds 64 bits.
#[test]
fn lengths_that_overflow_fail_as_without_weir() {
    let dir = disk_dir();
    let source = dir.path().join("lengths.c");
    let code = "#include <errno.h>\n#include <stdio.h>\n#include <sys/uio.h>\n#include <time.h>\n\
        int main(void) {\n\
        char byte = 'x';\n\
        struct iovec twice[2] = {{&byte, 1ul << 63}, {&byte, 1ul << 63}};\n\
        printf(\"ahead\");\n\
        while (clock() < CLOCKS_PER_SEC / 2) continue;\n\
        long result = writev(1, twice, 2);\n\
        fprintf(stderr, \"%ld %d\\n\", result, errno);\n\
        return 0; }\n";
    std::fs::write(&source, code).expect("the source");
    let program = dir.path().join("lengths");
    match programs::compile("cc", &["-O1", "-w", "-o", PROGRAM, SOURCE], &source, &program) {
        Ok(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
        Err(_) => return skip("lengths_that_overflow_fail_as_without_weir", "cc is not here"),
    }
    let output = run(dir.path(), &["run", "--quiet", "--max-delay=20ms", "--", "./lengths"]);
    assert!(output.status.success(), "{} {}", output.status, text(&output.stderr));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("ahead".into(), "-1 22\n".into()));
}
