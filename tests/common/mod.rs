//! Helpers of the end-to-end tests: the built binary, private directories, and the list of skipped tests.
#![allow(dead_code)] // not every test binary uses everything

pub mod campaign;
pub mod concurrent;
pub mod limited;
pub mod programs;
pub mod schema;
pub mod silent_directory;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The binary under test.
pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Returns the command `weir ARGUMENTS…` in `dir`.
pub fn weir(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(WEIR);
    command.args(arguments).current_dir(dir).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    // Keeps the tests' state files apart from those of the user's own weir.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// Gives `command` the default dispositions of signals. The tests may have inherited others: a shell starts background
/// jobs with SIGINT ignored, and nohup(1) ignores SIGHUP.
pub fn with_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2]
        {
            // SAFETY: the default disposition runs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls between fork and exec.
    unsafe { command.pre_exec(reset) }
}

/// Gives `command` no descriptors but its standard streams. The tests may have inherited others, which weir would name.
pub fn with_standard_streams(command: &mut Command) -> &mut Command {
    let close = || {
        // SAFETY: close_range(2) marks descriptors and uses no memory of this process.
        match unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure only makes a system call between fork and exec.
    unsafe { command.pre_exec(close) }
}

/// Runs `weir ARGUMENTS…` in `dir` and returns its output and status.
pub fn run(dir: &Path, arguments: &[&str]) -> Output {
    weir(dir, arguments).output().expect("the built binary starts")
}

/// Runs `weir bench ARGUMENTS… --quiet --json -` and returns the document. Panics if weir fails.
pub fn bench(dir: &Path, arguments: &[&str]) -> Value {
    let output = run(dir, &[&["bench"], arguments, &["--quiet", "--json", "-"]].concat());
    assert!(output.status.success(), "bench {arguments:?}: {}\n{}", output.status, text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

pub fn rows(document: &Value) -> &Vec<Value> {
    document["rows"].as_array().expect("rows")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the names in a directory, in no particular order.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Makes a private directory beside the binary. /tmp may be a tmpfs, which no disk backs.
pub fn disk_dir() -> tempfile::TempDir {
    let target = Path::new(WEIR).parent().expect("a directory");
    tempfile::Builder::new()
        .prefix("weir-test-")
        .tempdir_in(target)
        .expect("the target directory is writable")
}

/// A child process that is killed on drop, so that a failed test leaves no process.
pub struct KillOnDrop(pub Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const NOBODY: u32 = 65_534;

/// Returns the command `weir ARGUMENTS…`, run by the user nobody. `dir` is made by [`for_nobody`]; weir's state and
/// temporary files go into it.
pub fn as_nobody(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(dir.join("weir"));
    command.args(arguments).current_dir(dir).env("HOME", dir).env("TMPDIR", dir.join("tmp"));
    command.env_remove("XDG_STATE_HOME").env_remove("NO_COLOR").uid(NOBODY).gid(NOBODY);
    command
}

/// Makes a directory that belongs to the user nobody, with a copy of weir. The directory of the tests' own binary may be
/// closed to other users.
pub fn for_nobody() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("weir-test-").tempdir_in("/var/tmp").expect("/var/tmp");
    programs::copy_program(WEIR, &dir.path().join("weir"));
    fs::create_dir(dir.path().join("tmp")).expect("mkdir");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    for path in [dir.path().into(), dir.path().join("tmp")] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("chown");
    }
    dir
}

/// Returns true if unshare(1) can make a private mount namespace. It needs root, and a root directory that is a mount
/// point.
pub fn has_private_mounts() -> bool {
    is_root()
        && Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|output| output.status.success())
}

/// Returns the words before a command whose files may have at most `blocks` blocks of `ulimit -f`, of 512 or 1024 bytes. SIGXFSZ then
/// ends a program that does not handle it; if it is ignored, write(2) only fails with EFBIG, as on a disk that is full.
pub fn file_limit(blocks: usize, ignores_signal: bool) -> [String; 4] {
    let trap = if ignores_signal { "trap '' XFSZ; " } else { "" };
    let script = format!("{trap}ulimit -f {blocks} && exec \"$@\"");
    ["sh".into(), "-c".into(), script, "sh".into()]
}

/// Returns true if `tool --version` can be started.
pub fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

/// Polls `condition` until it is true. Panics after 90 s, more than a busy machine needs.
pub fn wait_for(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(condition), "waited 90 s for {what}");
}

/// Polls `condition` until it is true. Returns false after 90 s.
pub fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(90);
    while !condition() {
        if Instant::now() >= end {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
    true
}

/// Waits until a process sleeps and nothing traces it. A process that was just let go is still running for a moment.
pub fn wait_until_let_go(pid: u32) {
    wait_for("the sleep of the untraced process", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        status.contains("State:\tS") && status.contains("TracerPid:\t0")
    });
}

/// Reports that a test cannot run on this machine and why. The test then returns; scripts/test counts it as skipped.
pub fn skip(test: &str, why: &str) {
    println!("SKIP {test}: {why}");
    if let Some(path) = std::env::var_os("WEIR_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{test}: {why}"));
    }
}
