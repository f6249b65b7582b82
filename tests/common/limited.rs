//! Runs of weir that must not hang, and programs with a FUSE mount whose server stops answering.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{disk_dir, programs, skip, text, weir};

/// Far more than the limits of weir, in seconds.
pub const TIMEOUT: &str = "60";

/// Returns weir in a time limit, which kills it if it hangs, with pipes for all standard streams.
pub fn limited(dir: &Path, arguments: &[&str]) -> Command {
    let weir = weir(dir, arguments);
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", TIMEOUT]).arg(weir.get_program()).args(weir.get_args()).current_dir(dir);
    for (name, value) in weir.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asserts that a run ended before its time limit.
pub fn assert_no_hang(arguments: &[&str], output: &Output) {
    let status = output.status.code();
    assert!(
        status.is_some_and(|code| code < 124),
        "{arguments:?} hangs: {status:?} {}",
        text(&output.stderr)
    );
}

/// Compiles the program NAME of tests/peek_flush. Returns false without a compiler.
pub fn compile(dir: &Path, name: &str) -> bool {
    programs::compile_c(&format!("peek_flush/{name}"), &[], dir)
}

/// Compiles the program NAME of tests/peek_flush, which mounts a FUSE file system, and makes a directory for its mount. Returns
/// the directory of both if `starts` can start it there; else skips the test.
pub fn built(test: &str, name: &str, starts: impl Fn(&Path) -> bool) -> Option<tempfile::TempDir> {
    let dir = disk_dir();
    if !compile(dir.path(), name) {
        skip(test, "no gcc");
        return None;
    }
    std::fs::create_dir(dir.path().join("mount")).expect("a directory");
    let permitted = starts(dir.path());
    if !permitted {
        skip(test, "FUSE in a user namespace is not permitted");
    }
    permitted.then_some(dir)
}
