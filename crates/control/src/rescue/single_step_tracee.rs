//! Reads and sets the registers of a stopped tracee, for the single-step tests.

use weir_sys::ptrace;

pub(super) fn is_mark(status: i32) -> bool {
    libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGWINCH && status >> 16 == 0
}

pub(super) fn all_registers(pid: u32) -> libc::user_regs_struct {
    ptrace::registers(pid).expect("a stopped tracee")
}

/// Sets the result of the call that the tracee has just made.
pub(super) fn set_result(pid: u32, result: i64) {
    let mut all = all_registers(pid);
    all.rax = result as u64;
    assert!(ptrace::set_registers(pid, &all), "a stopped tracee");
}

/// Returns the file and offset of the next instruction.
pub(crate) fn code_location(pid: u32) -> String {
    let address = all_registers(pid).rip;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    let location = maps.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words.first()?.split_once('-')?;
        let inside = (number(start)..number(end)).contains(&address);
        let name = words.last()?.rsplit('/').next()?;
        inside.then(|| format!("{name}+{:x}", address - number(start) + number(words[2])))
    });
    location.unwrap_or_default()
}

/// Returns the address range of the first mapping whose line in maps matches.
pub(super) fn mapping(pid: u32, matches: impl Fn(&str) -> bool) -> Option<std::ops::Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let (start, end) = maps.lines().find(|line| matches(line))?.split_whitespace().next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}
