//! The seccomp(2) filter that stops a program only at the calls that weir records.
//!
//! A filter stays for the life of the program and its descendants, and a filtered call fails with ENOSYS if there is no
//! tracer. So the tracer stays until the last of these processes has ended, and the kernel kills them if the tracer dies
//! earlier (PTRACE_O_EXITKILL): a killed program does less harm than one whose writes all fail.
//!
//! The alternatives do not work. A second process cannot stand by as the next tracer: a process has one tracer, and calls
//! between the two would fail. A listener (SECCOMP_RET_USER_NOTIF) sees only the entry of a call, and weir needs the
//! result. A filter cannot read memory, so it cannot check whether weir lives.
//!
//! The filter decides by architecture and call number alone, so that the kernel (Linux 5.11) can cache which calls always
//! pass and need not run it for them.

use std::io;

use libc::{sock_filter, sock_fprog};

use crate::{Error, errno_text, syscalls};

/// The data of the filter's stops ("we" in ASCII), which tells them from stops of the program's own filters.
pub const MARK: u16 = 0x7765;

const STOP: u32 = libc::SECCOMP_RET_TRACE | MARK as u32;
const PASS: u32 = libc::SECCOMP_RET_ALLOW;

/// The offset of `nr` in struct seccomp_data (linux/seccomp.h).
pub(crate) const NUMBER_OFFSET: u32 = 0;
/// The offset of `arch` in struct seccomp_data.
pub(crate) const ARCH_OFFSET: u32 = 4;

/// The lowest number of x32 calls (__X32_SYSCALL_BIT of asm/unistd.h).
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// An upper bound of the numbers of filtered calls; a test checks it.
const NUMBERS: u32 = 512;

/// Calls that change the tracer of a process. They are filtered although weir does not record them.
const TRACER_CALLS: [i64; 3] = [libc::SYS_ptrace, libc::SYS_clone, libc::SYS_clone3];

/// A filter program in classic BPF.
#[derive(Debug)]
pub struct SeccompFilter {
    code: Vec<sock_filter>,
}

impl SeccompFilter {
    /// Builds a filter that stops at recorded calls, at calls of other architectures, and at those that change the tracer.
    /// Fails with [`Error::Backend`] if the kernel has no seccomp filters.
    pub fn new() -> Result<Self, Error> {
        let action = libc::SECCOMP_RET_TRACE;
        // SAFETY: the call reads a number from a live local.
        let known =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
        if known == 0 { Ok(Self { code: build() }) } else { Err(unusable(&io::Error::last_os_error())) }
    }

    /// Installs the filter in the calling thread; its children inherit it. Returns 0 or an errno. Async-signal-safe.
    ///
    /// Without CAP_SYS_ADMIN this sets no_new_privs, so that set-user-ID programs run without their privilege. An
    /// unprivileged tracer has the same effect.
    pub fn install(&self) -> i32 {
        let program = sock_fprog { len: self.code.len() as u16, filter: self.code.as_ptr().cast_mut() };
        // SAFETY: the program outlives the calls, which only read it; the other arguments are numbers.
        unsafe {
            // Without this flag, kernels before 5.16 enable the Spectre mitigation, which slows user code.
            let install = || {
                let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
                libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) == 0
            };
            let errno = || *libc::__errno_location();
            let (yes, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
            let set_no_new_privs = || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) == 0;
            let done = install() || errno() == libc::EACCES && set_no_new_privs() && install();
            if done { 0 } else { errno() }
        }
    }
}

/// Returns the error of a filter that could not be built or installed.
pub fn unusable(source: &io::Error) -> Error {
    let reason = format!("seccomp(2): {}: leave out --seccomp", errno_text(source));
    Error::Backend { backend: "ptrace", reason }
}

/// Returns the filter program.
fn build() -> Vec<sock_filter> {
    let load = |from: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, from);
    let native = jump(libc::BPF_JEQ, syscalls::NATIVE_ARCH, 1, 0);
    let mut code = vec![load(ARCH_OFFSET), native, verdict(true), load(NUMBER_OFFSET)];
    code.extend(decision(&ranges()));
    code
}

/// Returns the first number of each range of equal decisions, and whether calls in it are stopped.
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
    syscalls::op(number).is_some() || TRACER_CALLS.contains(&number)
}

/// Returns a binary search over the ranges.
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

pub(crate) fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

pub(crate) fn jump(how: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | how | libc::BPF_K) as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the instructions that this module emits. Returns the verdict and the number of executed instructions.
    fn run(code: &[sock_filter], arch: u32, number: u32) -> (u32, usize) {
        let (mut at, mut accumulator) = (0, 0);
        for executed in 1..=code.len() {
            let sock_filter { code: opcode, jt, jf, k } = code[at];
            let branch = |yes: bool| usize::from(if yes { jt } else { jf });
            at += 1;
            match u32::from(opcode) {
                0x20 => accumulator = if k == ARCH_OFFSET { arch } else { number },
                0x15 => at += branch(accumulator == k),
                0x35 => at += branch(accumulator >= k),
                0x06 => return (k, executed),
                other => panic!("{other:#x}"),
            }
        }
        panic!("the program does not end");
    }

    #[test]
    fn recorded_calls_are_stopped_and_others_pass() {
        let code = build();
        for number in 0..2 * NUMBERS {
            let (verdict, executed) = run(&code, syscalls::NATIVE_ARCH, number);
            let recorded = syscalls::op(number.into()).is_some() || TRACER_CALLS.contains(&number.into());
            assert_eq!(verdict, if recorded { STOP } else { PASS }, "{number}");
            assert!(executed <= 12, "{number}: {executed} instructions of {}", code.len());
        }
        let stopped = [libc::SYS_write, libc::SYS_execve, libc::SYS_ptrace];
        let passed = [libc::SYS_getppid, libc::SYS_futex, libc::SYS_exit_group];
        assert!(stopped.iter().all(|&call| run(&code, syscalls::NATIVE_ARCH, call as u32).0 == STOP));
        assert!(passed.iter().all(|&call| run(&code, syscalls::NATIVE_ARCH, call as u32).0 == PASS));
    }

    #[test]
    fn calls_of_other_architectures_are_stopped() {
        let code = build();
        for number in [0, 1, 20, 39, 1000] {
            assert_eq!(run(&code, 0x4000_0003, number).0, STOP, "32-bit {number}");
            #[cfg(target_arch = "x86_64")]
            assert_eq!(run(&code, syscalls::NATIVE_ARCH, X32 + number).0, STOP, "x32 {number}");
        }
    }

    #[test]
    fn all_filtered_numbers_are_below_the_bound() {
        use weir_model::trace::Op;
        assert!(Op::ALL.iter().filter_map(|op| op.number()).all(|number| number < NUMBERS.into()));
        assert!(TRACER_CALLS.iter().all(|&number| number < NUMBERS.into()));
    }
}
