//! Three fields of /proc/PID/stat, in as little time as can be: it is read for every process, ten times a second.

use std::fs::File;
use std::io::Read;

/// What is needed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Of the main thread: S sleeps, R runs …
    pub state: u8,
    /// User and system time of all threads.
    pub cpu_ticks: u64,
}

/// None when the process is gone.
pub(super) fn read(pid: u32) -> Option<Stat> {
    let mut text = [0; 512];
    let got = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    parse(&text[..got])
}

/// The name, in brackets, may have anything in it, brackets too.
fn parse(text: &[u8]) -> Option<Stat> {
    let behind = text.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(text.get(behind..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    let user: u64 = fields.nth(10)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Stat { state, cpu_ticks: user.checked_add(system)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets() {
        let text = b"7 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 30 12 13 14 15";
        assert_eq!(parse(text), Some(Stat { state: b'S', cpu_ticks: 42 }));
        assert_eq!(parse(b"7 (a) S 1 2"), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"7 (a)"), None);
        assert!(read(std::process::id()).is_some());
    }
}
