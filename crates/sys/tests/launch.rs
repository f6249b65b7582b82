//! A gated command inherits the signal state and descriptors of weir's parent, and nothing that weir opened itself.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use weir_sys::Error;
use weir_sys::launch::{GatedCommand, start};

fn gated(command: &[&str]) -> GatedCommand {
    start(&command.iter().map(OsString::from).collect::<Vec<_>>()).expect("a child")
}

fn status_of(pid: u32) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid as i32, &mut status, 0) }, pid as i32);
    status
}

/// Returns the output of a shell command.
fn output_of(script: &str) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("output");
    let child = gated(&["sh", "-c", &format!("exec >{} 2>&1; {script}", file.display())]);
    let pid = child.pid;
    child.release().expect("sh runs");
    status_of(pid);
    fs::read_to_string(file).expect("its output")
}

fn mask(status: &str, key: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(key)).expect("a line of this name");
    u64::from_str_radix(value.trim(), 16).expect("a mask")
}

#[test]
fn nothing_runs_before_the_gate_opens() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("made");
    let child = gated(&["touch", file.to_str().expect("a plain name")]);
    let pid = child.pid;
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!file.exists());
    child.release().expect("touch runs");
    assert_eq!(status_of(pid), 0);
    assert!(file.exists());
}

#[test]
fn a_child_whose_gate_never_opens_ends() {
    let child = gated(&["sleep", "100"]);
    let pid = child.pid;
    drop(child);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_missing_or_unexecutable_command_reports_errno() {
    for (command, errno) in [("no-such-command-here", libc::ENOENT), ("/etc/passwd", libc::EACCES)] {
        match gated(&[command]).release() {
            Err(Error::Command { command: named, source }) => {
                assert_eq!((named.as_str(), source.raw_os_error()), (command, Some(errno)));
            }
            other => panic!("{command}: {other:?}"),
        }
    }
    assert!(start(&[]).is_err());
}

#[test]
fn the_signal_state_is_the_inherited_one() {
    // Rust's runtime ignores SIGPIPE in this process, which cargo started with the default action.
    const SIGPIPE: u64 = 1 << (libc::SIGPIPE - 1);
    let own = mask(&fs::read_to_string("/proc/self/status").expect("a status"), "SigIgn:");
    assert_ne!(own & SIGPIPE, 0);
    let status = output_of("exec cat /proc/self/status");
    assert_eq!(mask(&status, "SigIgn:"), own & !SIGPIPE);
    assert_eq!(mask(&status, "SigBlk:"), 0);
}

#[test]
fn no_descriptor_of_weir_leaks() {
    let _held = tempfile::tempfile().expect("a file of weir's");
    let listed = output_of("exec ls /proc/self/fd");
    let inherited = fs::read_dir("/proc/self/fd").expect("descriptors").filter_map(|entry| {
        let fd: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        // SAFETY: F_GETFD changes nothing; EBADF is a valid result.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        (flags != -1 && flags & libc::FD_CLOEXEC == 0).then(|| fd.to_string())
    });
    let mut expected: Vec<_> = inherited.collect();
    // ls has the directory open that it lists.
    let extra = listed.lines().filter(|fd| !expected.iter().any(|known| known == fd)).count();
    assert_eq!(extra, 1, "{listed}");
    expected.retain(|fd| !listed.lines().any(|line| line == fd));
    assert!(expected.is_empty(), "missing {expected:?}");
}
