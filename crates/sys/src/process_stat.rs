//! A fast reader of /proc/PID/stat (proc_pid_stat(5)), which top reads for every process at each refresh.

use std::fs::File;
use std::io::Read;

use procfs::FromRead;
use procfs::process::Stat;

/// An upper bound of the length of /proc/PID/stat: a name of at most 64 bytes and 51 numbers of at most 20 digits.
pub const MAX_STAT_BYTES: usize = 1200;

/// Some fields of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ProcessStat {
    /// The state of the main thread as a letter, such as b'S' (sleeping) or b'R' (running).
    pub state: u8,
    pub parent: u32,
    /// Kernel threads have no user memory.
    pub is_kernel_thread: bool,
    /// The main thread has passed its exit stop (PTRACE_EVENT_EXIT).
    pub is_exiting: bool,
    /// CPU time of all threads in user mode.
    pub user_ticks: u64,
    /// CPU time of all threads in the kernel.
    pub system_ticks: u64,
    pub threads: u32,
    /// The start time in ticks since boot. PID and start time together identify a process.
    pub start_ticks: u64,
    /// The start address of the code (startcode), which changes at execve(2); 1 if it may not be read.
    pub code_start: u64,
    /// The start address of the stack (startstack), which is random for each program that execve(2) starts; 0 if it may not be
    /// read.
    pub stack_start: u64,
}

/// The flag of kernel threads (include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;
/// The flag of threads in the last part of exit(2) (include/linux/sched.h, kernel/exit.c).
const PF_EXITING: u64 = 0x4;

impl ProcessStat {
    /// Returns whether the main thread has ended and others run.
    pub fn lacks_main_thread(&self) -> bool {
        self.main_thread_has_ended() && self.threads > 1
    }

    /// Returns whether all threads have ended.
    pub fn has_ended(&self) -> bool {
        self.main_thread_has_ended() && self.threads <= 1
    }

    fn main_thread_has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Returns what differs after an execve(2): the addresses of the code and of the stack.
    pub fn image(&self) -> (u64, u64) {
        (self.code_start, self.stack_start)
    }

    /// Returns the time since the start of the process, or of the thread if the file is that of a thread, in seconds. `now_ns` is
    /// CLOCK_BOOTTIME.
    pub fn age_s(&self, now_ns: u64) -> f64 {
        (now_ns as f64 / 1e9 - self.start_ticks as f64 / procfs::ticks_per_second() as f64).max(0.0)
    }

    /// Returns the CPU time of all threads in user mode and in the kernel.
    pub fn cpu_ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks
    }
}

/// Reads /proc/PID/stat. Returns None if the process has ended.
pub fn read(pid: u32) -> Option<ProcessStat> {
    let mut text = [0; MAX_STAT_BYTES];
    let got = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    parse(&text[..got])
}

/// Returns the process name. It stands in parentheses and may contain any byte, parentheses too.
pub fn name(text: &[u8]) -> Option<&[u8]> {
    let from = text.iter().position(|byte| *byte == b'(')? + 1;
    let to = text.iter().rposition(|byte| *byte == b')')?;
    text.get(from..to)
}

/// Parses the fields after the process name.
pub fn parse(text: &[u8]) -> Option<ProcessStat> {
    let start = text.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(text.get(start..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    // Skips `skip` fields and parses the next one.
    let mut number = |skip: usize| fields.nth(skip)?.parse::<u64>().ok();
    let (parent, flags) = (u32::try_from(number(0)?).ok()?, number(4)?);
    Some(ProcessStat {
        state,
        parent,
        is_kernel_thread: flags & PF_KTHREAD != 0,
        is_exiting: flags & PF_EXITING != 0,
        user_ticks: number(4)?,
        system_ticks: number(0)?,
        threads: u32::try_from(number(4)?).ok()?,
        start_ticks: number(1)?,
        code_start: number(3)?,
        stack_start: number(1)?,
    })
    .filter(|stat| stat.user_ticks.checked_add(stat.system_ticks).is_some())
}

/// Parses all fields of /proc/PID/stat. procfs panics if the name is not in parentheses between two blanks.
pub(crate) fn parse_all(text: &str) -> Option<Stat> {
    let text = text.trim();
    let (before, after) = (text.split_once('(')?.0, text.rsplit_once(')')?.1);
    let has_name =
        before.ends_with(' ') && after.starts_with(' ') && before.len() + after.len() + 2 <= text.len();
    has_name.then(|| Stat::from_read(text.as_bytes()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_stat_is_none() {
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(parse_all(&own).map(|stat| stat.pid), Some(std::process::id() as i32));
        let damaged =
            ["", "(", ")", ")/:(", "7 (a)", "7 (a) ", "(a) S 1", "7 ) (a S", "7 ) (", "\u{e9}(a) S 1"];
        assert!(damaged.into_iter().all(|text| parse_all(text).is_none()));
    }

    #[test]
    fn names_may_contain_parentheses() {
        let text = b"7 (a) R (b) S 1 2 3 4 5 2097152 7 8 9 10 30 12 13 14 15 16 17 18 19 20 21 22 23 24 25";
        let stat = parse(text).unwrap();
        assert_eq!((stat.state, stat.parent), (b'S', 1));
        assert_eq!((stat.is_kernel_thread, stat.is_exiting), (true, false));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.cpu_ticks()), (30, 12, 42));
        assert_eq!((stat.start_ticks, stat.image()), (19, (23, 25)));
        assert_eq!((stat.age_s(1_190_000_000), stat.age_s(0)), (1.0, 0.0), "19 ticks of 10 ms");
        assert_eq!(name(text), Some(&b"a) R (b"[..]));
        for broken in [&b"7 (a) S 1 2"[..], b"", b"7 (a)", b"7 ) ("] {
            assert_eq!((parse(broken), name(broken).filter(|name| name.is_empty())), (None, None));
        }
    }

    #[test]
    fn a_zombie_is_exiting() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let stat = || read(child.id()).unwrap();
        while stat().state != b'Z' {
            std::thread::yield_now();
        }
        assert!(stat().is_exiting);
        child.wait().unwrap();
    }

    #[test]
    fn stat_of_this_process_is_read() {
        let own = read(std::process::id()).unwrap();
        assert_eq!((own.parent, own.is_kernel_thread), (std::os::unix::process::parent_id(), false));
        assert!(!own.is_exiting);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code: Vec<&str> = maps.lines().filter(|line| line.contains("r-xp")).collect();
        let start = |line: &&str| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        assert!(code.iter().any(|line| own.code_start.abs_diff(start(line)) < 1 << 24), "{own:?}");
    }
}
