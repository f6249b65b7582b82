//! Directories whose server, tests/environments/silent_directory.c, stops answering when a test asks for that.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{disk_dir, programs, skip};

/// Returns a directory with the server's program, and with `mount` and `backing` for it; skips the test without a compiler.
pub fn prepared(test: &str) -> Option<TempDir> {
    let dir = disk_dir();
    if !programs::compile_c("environments/silent_directory", &[], dir.path()) {
        skip(test, "gcc does not build its program");
        return None;
    }
    for name in ["mount", "backing"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    Some(dir)
}

/// Returns the PID of the server when it has written it.
pub fn server(dir: &Path) -> Option<String> {
    let number = fs::read_to_string(dir.join("server")).ok()?;
    number.ends_with('\n').then(|| number.trim().to_string())
}
