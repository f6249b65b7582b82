//! Programs that a test makes. Also for the tests of other crates, which name this file by its path.
#![allow(dead_code)] // not every test binary uses everything

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program by cp(1). A file that this process itself wrote may still be open in a child that another test has
/// just forked; then execve(2) fails with ETXTBSY.
pub fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let copied = Command::new("cp").arg("--").arg(from).arg(to).status().expect("cp");
    assert!(copied.success(), "cp to {}", to.display());
}

/// Tells whether clang++ can build programs with libc++.
pub fn has_libcxx() -> bool {
    let words = ["-stdlib=libc++", "-x", "c++", "-include", "fstream", "-fsyntax-only", "/dev/null"];
    let status = Command::new("clang++").args(words).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
