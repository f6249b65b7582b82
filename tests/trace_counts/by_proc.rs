//! Counts by the kernel, in /proc/PID/io.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::{Counts, with_streams};

/// Runs a command and returns what the kernel counts from its execve(2) to its end.
pub fn run(dir: &Path, words: &[&str]) -> Counts {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    let mut command = with_streams(command, dir);
    let stop_at_exec = || {
        // SAFETY: the call takes no pointers; it makes the parent the tracer of this process.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: the closure makes one system call between fork and exec.
    let mut child = unsafe { command.pre_exec(stop_at_exec) }.spawn().expect("the command starts");
    let pid = child.id() as libc::pid_t;
    let mut status = 0;
    // SAFETY: `status` is valid for writes; the child is stopped at its execve(2), and then detached.
    unsafe {
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        assert!(libc::WIFSTOPPED(status), "{words:?} stops at its execve(2)");
    }
    let before = read(pid);
    // SAFETY: as above.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0) };
    // SAFETY: `info` is plain data, for which zeros are valid. WNOWAIT leaves the zombie, whose counters can be read.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        assert_eq!(libc::waitid(libc::P_PID, pid as u32, &mut info, libc::WEXITED | libc::WNOWAIT), 0);
    }
    let after = read(pid);
    child.wait().expect("the command has ended");
    Counts {
        read_calls: after.read_calls - before.read_calls,
        read_bytes: after.read_bytes - before.read_bytes,
        write_calls: after.write_calls - before.write_calls,
        write_bytes: after.write_bytes - before.write_bytes,
    }
}

fn read(pid: libc::pid_t) -> Counts {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("/proc/PID/io");
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.and_then(|number| number.parse().ok()).expect("a number")
    };
    Counts {
        read_calls: number("syscr"),
        read_bytes: number("rchar"),
        write_calls: number("syscw"),
        write_bytes: number("wchar"),
    }
}
