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

/// Reads /proc/PID/status. Returns None if the process has ended.
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
}
