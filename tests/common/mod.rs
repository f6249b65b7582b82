//! What every end-to-end test needs: the built binary, a private directory, a way to say "skipped".
#![allow(dead_code)] // not every test binary uses everything

pub mod campaign;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The binary under test.
pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// `weir ARGUMENTS…` in `dir`.
pub fn weir(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(WEIR);
    command.args(arguments).current_dir(dir).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    // What weir keeps is kept apart from what the user's own weir keeps.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// It is not to ignore what these tests ignore: a background job is started without SIGINT, one of nohup without SIGHUP.
pub fn with_signals(command: &mut Command) -> &mut Command {
    let usual = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2]
        {
            // SAFETY: the default disposition runs no code.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: a few system calls are made between fork and exec, and nothing else.
    unsafe { command.pre_exec(usual) }
}

/// Runs it and gives everything it said.
pub fn run(dir: &Path, arguments: &[&str]) -> Output {
    weir(dir, arguments).output().expect("the built binary starts")
}

/// Runs `weir bench ARGUMENTS… --quiet --json -` and gives the document; fails the test if it fails.
pub fn bench(dir: &Path, arguments: &[&str]) -> Value {
    let output = run(dir, &[&["bench"], arguments, &["--quiet", "--json", "-"]].concat());
    assert!(output.status.success(), "bench {arguments:?}: {}\n{}", output.status, text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

/// The rows of a document.
pub fn rows(document: &Value) -> &Vec<Value> {
    document["rows"].as_array().expect("rows")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names in a directory.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// A private directory on the disk that the tests are built on: /tmp may be a tmpfs, which has no disk.
pub fn disk_dir() -> tempfile::TempDir {
    let target = Path::new(WEIR).parent().expect("a directory");
    tempfile::Builder::new()
        .prefix("weir-test-")
        .tempdir_in(target)
        .expect("the target directory is writable")
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const NOBODY: u32 = 65_534;

/// weir in a directory of the user nobody, with everything that it might write in that directory.
pub fn as_nobody(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(dir.join("weir"));
    command.args(arguments).current_dir(dir).env("HOME", dir).env("TMPDIR", dir.join("tmp"));
    command.env_remove("XDG_STATE_HOME").env_remove("NO_COLOR").uid(NOBODY).gid(NOBODY);
    command
}

/// A directory that everybody may search, with a copy of weir: that of the tests need not be one.
pub fn for_nobody() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("weir-test-").tempdir_in("/var/tmp").expect("/var/tmp");
    fs::copy(WEIR, dir.path().join("weir")).expect("a copy of weir");
    fs::create_dir(dir.path().join("tmp")).expect("mkdir");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    for path in [dir.path().into(), dir.path().join("tmp")] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("chown");
    }
    dir
}

/// Can a process have mounts of its own here? Not without root, nor in a chroot that is no mount point.
pub fn has_private_mounts() -> bool {
    is_root()
        && Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|output| output.status.success())
}

pub fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

/// Waits until it is so, and fails the test if that takes too long even for a busy machine.
pub fn wait_for(what: &str, mut seen: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !seen() {
        assert!(Instant::now() < end, "waited 30 s for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Says that a test cannot run here and why; the test then returns. The test script counts these.
pub fn skip(test: &str, why: &str) {
    println!("SKIP {test}: {why}");
    if let Some(path) = std::env::var_os("WEIR_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{test}: {why}"));
    }
}
