//! Some fields of /proc/PID/stat, in as little time as can be: it is read for every process, again and again.

use std::fs::File;
use std::io::Read;

/// No line of /proc/PID/stat is longer: a name of 64 bytes at most and 51 numbers.
pub const STAT_MOST: usize = 1200;

/// What is needed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ProcessStat {
    /// Of the main thread: S sleeps, R runs …
    pub state: u8,
    pub parent: u32,
    /// It is a thread of the kernel: it has no memory of its own.
    pub of_kernel: bool,
    /// User and system time of all threads.
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// When it began, in ticks since the machine did: with its number, who it is.
    pub began_ticks: u64,
    /// Where its program lies: another one after an execve(2). 1 where that is not to be seen.
    pub code: u64,
}

/// `PF_KTHREAD` of linux/sched.h.
const OF_KERNEL: u64 = 0x0020_0000;

impl ProcessStat {
    /// Returns user and system time of all threads.
    pub fn cpu_ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks
    }
}

/// None when the process is gone.
pub fn read(pid: u32) -> Option<ProcessStat> {
    let mut text = [0; STAT_MOST];
    let got = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    parse(&text[..got])
}

/// The name, in brackets, may have anything in it, brackets too.
pub fn name(text: &[u8]) -> Option<&[u8]> {
    let from = text.iter().position(|byte| *byte == b'(')? + 1;
    let to = text.iter().rposition(|byte| *byte == b')')?;
    text.get(from..to)
}

/// The fields behind the name.
pub fn parse(text: &[u8]) -> Option<ProcessStat> {
    let behind = text.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(text.get(behind..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    // `skip` fields behind the one that was read last.
    let mut number = |skip: usize| fields.nth(skip)?.parse::<u64>().ok();
    Some(ProcessStat {
        state,
        parent: u32::try_from(number(0)?).ok()?,
        of_kernel: number(4)? & OF_KERNEL != 0,
        user_ticks: number(4)?,
        system_ticks: number(0)?,
        began_ticks: number(6)?,
        code: number(3)?,
    })
    .filter(|stat| stat.user_ticks.checked_add(stat.system_ticks).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets() {
        let text = b"7 (a) R (b) S 1 2 3 4 5 2097152 7 8 9 10 30 12 13 14 15 16 17 18 19 20 21 22 23 24 25";
        let stat = parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.of_kernel), (b'S', 1, true));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.cpu_ticks()), (30, 12, 42));
        assert_eq!((stat.began_ticks, stat.code), (19, 23));
        assert_eq!(name(text), Some(&b"a) R (b"[..]));
        for broken in [&b"7 (a) S 1 2"[..], b"", b"7 (a)", b"7 ) ("] {
            assert_eq!((parse(broken), name(broken).filter(|name| name.is_empty())), (None, None));
        }
    }

    #[test]
    fn of_this_process() {
        let own = read(std::process::id()).unwrap();
        assert_eq!((own.parent, own.of_kernel), (std::os::unix::process::parent_id(), false));
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code: Vec<&str> = maps.lines().filter(|line| line.contains("r-xp")).collect();
        let start = |line: &&str| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        assert!(code.iter().any(|line| own.code.abs_diff(start(line)) < 1 << 24), "{own:?}");
    }
}
