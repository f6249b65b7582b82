//! A fast reader of the first lines of /proc/PID/status (proc_pid_status(5)).
//!
//! Unlike /proc/PID/stat, the kernel reads it without the lock that execve(2) holds. A process that never leaves execve(2)
//! still answers, so weir may read the status of all processes of the machine.

use std::fs::File;
use std::io::Read;

/// More than the lines up to PPid: a name of at most 64 bytes, of which each can be escaped, and numbers.
const MAX_BYTES: usize = 512;

/// Some fields of /proc/PID/status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ProcessStatus {
    /// The state of the thread as a letter, such as b'S' (sleeping) or b'Z' (zombie).
    pub state: u8,
    pub parent: u32,
}

/// Reads /proc/PID/status. Returns None if no such process exists or /proc hides it; a zombie has a status.
pub fn read(pid: u32) -> Option<ProcessStatus> {
    let mut text = [0; MAX_BYTES];
    let got = File::open(format!("/proc/{pid}/status")).ok()?.read(&mut text).ok()?;
    parse(&text[..got])
}

/// Parses the first lines.
pub(crate) fn parse(text: &[u8]) -> Option<ProcessStatus> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let mut field = |name: &[u8]| lines.find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii);
    let state = *field(b"State:")?.first()?;
    let parent = std::str::from_utf8(field(b"PPid:")?).ok()?.parse().ok()?;
    Some(ProcessStatus { state, parent })
}

/// Returns whether a process is in the part of execve(2) in which most of its files in /proc do not answer: its new memory is
/// installed, and no code is mapped there yet. That part takes microseconds, unless a server (FUSE, NFS) does not answer the
/// close of a file.
pub fn is_executing(pid: u32) -> bool {
    let mut text = [0; MAX_BYTES];
    let got = File::open(format!("/proc/{pid}/statm")).and_then(|mut file| file.read(&mut text));
    got.is_ok_and(|got| has_no_code(&text[..got]))
}

/// Returns whether a text of /proc/PID/statm has a size, and a size 0 of the code.
fn has_no_code(text: &[u8]) -> bool {
    let mut numbers = text.split(|byte| *byte == b' ');
    numbers.next().is_some_and(|size| size != b"0") && numbers.nth(2) == Some(b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_are_read() {
        let text = b"Name:\tState:\tX\\nPPid:\t9\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t7\nNgid:\t0\nPid:\t7\nPPid:\t3\n";
        assert_eq!(parse(text), Some(ProcessStatus { state: b'S', parent: 3 }));
        for damaged in [&b""[..], b"State:\n", b"State:\tS\nPPid:\t\n", b"State:\tS\nPPid:\t-1\n"] {
            assert_eq!(parse(damaged), None);
        }
        let own = read(std::process::id()).expect("this process");
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert_eq!(read(u32::MAX / 2), None);
    }

    #[test]
    fn a_process_with_code_is_not_executing() {
        assert!(has_no_code(b"33 1 0 0 0 33 0\n"));
        for other in [&b"33 1 0 1 0 33 0\n"[..], b"0 0 0 0 0 0 0\n", b"", b"33 1"] {
            assert!(!has_no_code(other));
        }
        assert!(!is_executing(std::process::id()) && !is_executing(u32::MAX / 2) && !is_executing(2));
    }
}
