//! The seccomp filter that stops a program only at the calls that weir follows.
//!
//! A filter stays as long as the program and all that it starts, and a call for which it asks a tracer fails with
//! ENOSYS when there is none. So who installs it stays until the last of them has ended, and has them killed if it
//! dies before (PTRACE_O_EXITKILL): a program that is gone does less harm than one whose every write fails.
//!
//! Nothing milder was found. A second process cannot wait to be the next tracer: a process has one, and what it calls
//! between two fails. A listener (SECCOMP_RET_USER_NOTIF) could be held by a second process, but sees calls begin
//! only, and weir needs what they return. A filter sees no memory that weir's death might change.
//!
//! The filter decides by architecture and number alone, so the kernel (Linux 5.11) knows beforehand which calls it
//! always lets pass and does not run it for them.

use std::io;

use libc::{sock_filter, sock_fprog};

use crate::{Error, errno_text, syscalls};

/// What comes with the filter's stops: by this they are told from those of a filter of the program's own.
pub const MARK: u16 = 0x7765;

const STOP: u32 = libc::SECCOMP_RET_TRACE | MARK as u32;
const PASS: u32 = libc::SECCOMP_RET_ALLOW;

/// Offsets in struct seccomp_data.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// Numbers from here on are x32's, or none at all.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Above all numbers of calls that are followed.
const NUMBERS: u32 = 512;

/// Calls that are no operations but decide who traces whom.
const OF_TRACERS: [i64; 3] = [libc::SYS_ptrace, libc::SYS_clone, libc::SYS_clone3];

/// A filter in classic BPF.
#[derive(Debug)]
pub struct SeccompFilter {
    code: Vec<sock_filter>,
}

impl SeccompFilter {
    /// One that stops at what weir follows, at other architectures' calls, and at those that have to do with tracers.
    /// The error is [`Error::Backend`]: the kernel has no seccomp filters.
    pub fn new() -> Result<Self, Error> {
        let action = libc::SECCOMP_RET_TRACE;
        // SAFETY: asks about a number, which it reads from a live local.
        let known =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
        if known == 0 { Ok(Self { code: code() }) } else { Err(unusable(&io::Error::last_os_error())) }
    }

    /// Puts it over the calling thread and all that it will start. Returns errno; 0: it is done. Without
    /// CAP_SYS_ADMIN this takes from set-user-ID programs their privilege, which a tracer without it does as well.
    /// Async-signal-safe.
    pub fn install(&self) -> i32 {
        let program = sock_fprog { len: self.code.len() as u16, filter: self.code.as_ptr().cast_mut() };
        // SAFETY: the program lives through the calls, and is only read; the others take numbers.
        unsafe {
            // Without the flag, kernels before 5.16 also slow the program's own code, against Spectre.
            let install = || {
                let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
                libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) == 0
            };
            let errno = || *libc::__errno_location();
            let (yes, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
            let renounce = || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) == 0;
            let done = install() || errno() == libc::EACCES && renounce() && install();
            if done { 0 } else { errno() }
        }
    }
}

/// The error of a filter that could not be made or installed.
pub fn unusable(source: &io::Error) -> Error {
    let reason = format!("seccomp(2): {}: leave out --seccomp", errno_text(source));
    Error::Backend { backend: "ptrace", reason }
}

fn code() -> Vec<sock_filter> {
    let load = |from: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, from);
    let native = jump(libc::BPF_JEQ, syscalls::NATIVE_ARCH, 1, 0);
    let mut code = vec![load(ARCH), native, verdict(true), load(NUMBER)];
    code.extend(decision(&ranges()));
    code
}

/// Where numbers begin that are stopped at, and where those that are not.
fn ranges() -> Vec<(u32, bool)> {
    let mut ranges = vec![(0, stops(0))];
    for number in 1..NUMBERS {
        if ranges.last().is_none_or(|last| last.1 != stops(number)) {
            ranges.push((number, stops(number)));
        }
    }
    #[cfg(target_arch = "x86_64")]
    ranges.push((X32, true));
    ranges
}

fn stops(number: u32) -> bool {
    let number = i64::from(number);
    syscalls::op(number).is_some() || OF_TRACERS.contains(&number)
}

/// A tree of comparisons that halves the ranges at each.
fn decision(ranges: &[(u32, bool)]) -> Vec<sock_filter> {
    if let [(_, stops)] = ranges {
        return vec![verdict(*stops)];
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (below, above) = (decision(low), decision(high));
    let past = u8::try_from(below.len()).expect("fewer than 128 ranges in a half");
    let mut code = vec![jump(libc::BPF_JGE, high[0].0, past, 0)];
    code.extend(below);
    code.extend(above);
    code
}

fn verdict(stops: bool) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, if stops { STOP } else { PASS })
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(how: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | how | libc::BPF_K) as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs it as the kernel does, as far as it is used here. Gives the verdict, and the instructions that it took.
    fn run(code: &[sock_filter], arch: u32, number: u32) -> (u32, usize) {
        let (mut at, mut held) = (0, 0);
        for taken in 1..=code.len() {
            let sock_filter { code: what, jt, jf, k } = code[at];
            let branch = |yes: bool| usize::from(if yes { jt } else { jf });
            at += 1;
            match u32::from(what) {
                0x20 => held = if k == ARCH { arch } else { number },
                0x15 => at += branch(held == k),
                0x35 => at += branch(held >= k),
                0x06 => return (k, taken),
                other => panic!("{other:#x}"),
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn it_stops_at_what_is_followed_and_at_nothing_else() {
        let code = code();
        for number in 0..2 * NUMBERS {
            let (said, taken) = run(&code, syscalls::NATIVE_ARCH, number);
            let followed = syscalls::op(number.into()).is_some() || OF_TRACERS.contains(&number.into());
            assert_eq!(said, if followed { STOP } else { PASS }, "{number}");
            assert!(taken <= 12, "{number}: {taken} instructions of {}", code.len());
        }
        let followed = [libc::SYS_write, libc::SYS_execve, libc::SYS_ptrace];
        let passed = [libc::SYS_getppid, libc::SYS_futex, libc::SYS_exit_group];
        assert!(followed.iter().all(|&call| run(&code, syscalls::NATIVE_ARCH, call as u32).0 == STOP));
        assert!(passed.iter().all(|&call| run(&code, syscalls::NATIVE_ARCH, call as u32).0 == PASS));
    }

    #[test]
    fn it_stops_at_calls_of_other_numberings() {
        let code = code();
        for number in [0, 1, 20, 39, 1000] {
            assert_eq!(run(&code, 0x4000_0003, number).0, STOP, "32-bit {number}");
            #[cfg(target_arch = "x86_64")]
            assert_eq!(run(&code, syscalls::NATIVE_ARCH, X32 + number).0, STOP, "x32 {number}");
        }
    }

    #[test]
    fn no_followed_number_is_above_those_looked_at() {
        use weir_model::trace::Op;
        assert!(Op::ALL.iter().filter_map(|&op| syscalls::number(op)).all(|number| number < NUMBERS.into()));
        assert!(OF_TRACERS.iter().all(|&number| number < NUMBERS.into()));
    }
}
