//! The recorded system calls of x86-64 and aarch64: by number, and the meaning of their arguments.

use std::ops::RangeInclusive;

use weir_model::trace::Op;

use crate::blocking_calls;

/// An upper bound of the numbers of all operations; a larger number fails to compile.
const NUMBERS: usize = 512;

const BY_NUMBER: [Option<Op>; NUMBERS] = {
    let mut ops = [None; NUMBERS];
    let mut entry = 0;
    while entry < Op::ALL.len() {
        if let Some(number) = Op::ALL[entry].number() {
            ops[number as usize] = Some(Op::ALL[entry]);
        }
        entry += 1;
    }
    ops
};

/// AUDIT_ARCH_X86_64 of linux/audit.h, weir's own architecture in seccomp and PTRACE_GET_SYSCALL_INFO.
#[cfg(target_arch = "x86_64")]
pub const NATIVE_ARCH: u32 = 0xC000_003E;
/// AUDIT_ARCH_AARCH64 of linux/audit.h, weir's own architecture in seccomp and PTRACE_GET_SYSCALL_INFO.
#[cfg(target_arch = "aarch64")]
pub const NATIVE_ARCH: u32 = 0xC000_00B7;

/// The machine code of SYSCALL, by which x86-64 programs make system calls.
pub const SYSCALL_CODE: [u8; 2] = [0x0f, 0x05];

/// Returns the operation of a system call number; None if weir does not record it.
pub fn op(number: i64) -> Option<Op> {
    *BY_NUMBER.get(usize::try_from(number).ok()?)?
}

/// Returns the name of a system call that weir records or in which programs block; None for others.
pub fn name(number: i64) -> Option<&'static str> {
    op(number).map(Op::name).or_else(|| blocking_calls::name(number))
}

/// Returns whether a call belongs to another system call table: 32-bit on x86-64 and aarch64, or x32. `arch` is an
/// AUDIT_ARCH_ value of linux/audit.h.
pub fn is_foreign(arch: u32, number: u64) -> bool {
    const X32_BIT: u64 = 0x4000_0000;
    arch != NATIVE_ARCH || (cfg!(target_arch = "x86_64") && number != u64::MAX && number & X32_BIT != 0)
}

/// Returns whether a call replaces the program.
pub fn executes(number: i64) -> bool {
    [libc::SYS_execve, libc::SYS_execveat].contains(&number)
}

/// The results by which the kernel restarts an interrupted call, -ERESTART_RESTARTBLOCK to -ERESTARTSYS of the kernel's
/// include/linux/errno.h. Only a tracer sees them.
pub const RESTART_CODES: std::ops::RangeInclusive<i64> = -516..=-512;

/// Returns whether the kernel restarts this call by itself when a tracer stops the blocked thread (signal(7),
/// "Interruption of system calls"). Other calls fail with EINTR (epoll_wait, semop, rt_sigtimedwait, socket calls with a
/// timeout) or return a partial result.
pub fn restarts(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(number, libc::SYS_poll | libc::SYS_select | libc::SYS_pause) {
        return true;
    }
    matches!(
        number,
        libc::SYS_futex
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_ppoll
            | libc::SYS_pselect6
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_restart_syscall
            | libc::SYS_rt_sigsuspend
            | libc::SYS_flock
    )
}

/// Returns whether this call fails with EINTR when a tracer stops the blocked thread, whatever its arguments.
pub fn fails_with_eintr(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return true;
    }
    matches!(
        number,
        libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_msgrcv
            | libc::SYS_msgsnd
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_io_getevents
            | libc::SYS_connect
            | libc::SYS_recvmmsg
            | libc::SYS_sendmmsg
            | libc::SYS_getrandom
            | libc::SYS_mq_timedreceive
            | libc::SYS_mq_timedsend
    )
}

/// Returns whether this call has had no effect when it fails with EINTR, so that it can be repeated.
pub fn can_be_repeated(number: i64) -> bool {
    match op(number) {
        Some(op) => op.reads() || op.writes() || matches!(op, Op::Accept | Op::Accept4),
        // An interrupted connect(2) continues in the background; a second one fails with EALREADY.
        None => fails_with_eintr(number) && number != libc::SYS_connect,
    }
}

/// Returns the requested number of bytes; None if it is in the caller's memory (vectors, messages) or the call transfers none.
pub fn requested_bytes(op: Op, args: &[u64; 6]) -> Option<u64> {
    match op {
        Op::Read | Op::Pread | Op::Recvfrom | Op::Write | Op::Pwrite | Op::Sendto | Op::Tee => Some(args[2]),
        Op::Sendfile => Some(args[3]),
        Op::Splice | Op::CopyFileRange => Some(args[4]),
        _ => None,
    }
}

/// Returns the flags of a call that receives from a socket (recv(2)); None for other calls.
pub fn receive_flags(op: Op, args: &[u64; 6]) -> Option<i32> {
    match op {
        Op::Recvfrom | Op::Recvmmsg => Some(args[3] as i32),
        Op::Recvmsg => Some(args[2] as i32),
        _ => None,
    }
}

/// Returns whether a call leaves the bytes that it reads in their descriptor, or reads a copy of bytes that were sent. Such a
/// call moves no bytes out of its input, whatever its result is.
pub fn leaves_input(op: Op, args: &[u64; 6]) -> bool {
    let flags = receive_flags(op, args).unwrap_or(0);
    op == Op::Tee || flags & (libc::MSG_PEEK | libc::MSG_ERRQUEUE) != 0
}

/// Returns whether the result of a call may be larger than the number of bytes that it moved: the length of a datagram of which
/// the kernel copied the beginning and discarded the rest (MSG_TRUNC).
pub fn counts_discarded(op: Op, args: &[u64; 6]) -> bool {
    receive_flags(op, args).is_some_and(|flags| flags & libc::MSG_TRUNC != 0)
}

/// Returns the descriptor from which a call reads bytes.
pub fn input(op: Op, args: &[u64; 6]) -> Option<i32> {
    match op {
        Op::Sendfile => Some(args[1] as i32),
        Op::Splice | Op::Tee | Op::CopyFileRange => Some(args[0] as i32),
        _ if op.reads() => Some(args[0] as i32),
        _ => None,
    }
}

/// Returns the descriptor to which a call writes bytes.
pub fn output(op: Op, args: &[u64; 6]) -> Option<i32> {
    match op {
        Op::Sendfile => Some(args[0] as i32),
        Op::Splice | Op::CopyFileRange => Some(args[2] as i32),
        Op::Tee => Some(args[1] as i32),
        _ if op.writes() => Some(args[0] as i32),
        _ => None,
    }
}

/// Returns the descriptor on which a call operates; for calls that copy, the output. Returns None for calls that create a
/// descriptor and those without one.
pub fn descriptor(op: Op, args: &[u64; 6]) -> Option<i32> {
    use Op::*;
    match op {
        Close | CloseRange | Dup | Dup2 | Dup3 | Fcntl | Accept | Accept4 | Lseek | Fsync | Fdatasync
        | SyncFileRange | Syncfs | Fallocate | Ftruncate | Fadvise | IoUringEnter => Some(args[0] as i32),
        Mmap if args[3] & libc::MAP_ANONYMOUS as u64 == 0 => Some(args[4] as i32),
        _ => output(op, args).or_else(|| input(op, args)),
    }
}

/// Returns the descriptors that a successful close_range(2) closes; None if it only sets their close-on-exec flag.
pub fn closed_range(args: &[u64; 6]) -> Option<RangeInclusive<i32>> {
    let number = |argument: u64| u64::from(argument as u32).min(i32::MAX as u64) as i32;
    let closes = args[2] & u64::from(libc::CLOSE_RANGE_CLOEXEC) == 0;
    closes.then(|| number(args[0])..=number(args[1]))
}

/// Returns the address of a call's buffer; None if the call takes several buffers or none.
pub fn buffer(op: Op, args: &[u64; 6]) -> Option<u64> {
    use Op::*;
    matches!(op, Read | Pread | Recvfrom | Write | Pwrite | Sendto).then_some(args[1])
}

/// Returns address and length of the array of struct iovec that a call takes (readv(2)).
pub fn vector(op: Op, args: &[u64; 6]) -> Option<(u64, u64)> {
    use Op::*;
    matches!(op, Readv | Preadv | Preadv2 | Writev | Pwritev | Pwritev2 | Vmsplice)
        .then_some((args[1], args[2]))
}

/// Returns the address of the struct msghdr that a call takes (sendmsg(2)).
pub fn message(op: Op, args: &[u64; 6]) -> Option<u64> {
    matches!(op, Op::Recvmsg | Op::Sendmsg).then_some(args[1])
}

/// Returns the address of the array of struct mmsghdr that a call takes (sendmmsg(2)).
pub fn messages(op: Op, args: &[u64; 6]) -> Option<u64> {
    matches!(op, Op::Recvmmsg | Op::Sendmmsg).then_some(args[1])
}

/// Returns the indexes of the arguments that are paths, old name first, each with the index of its directory descriptor
/// if it has one.
pub fn paths(op: Op) -> &'static [(Option<usize>, usize)] {
    use Op::*;
    match op {
        Open | Creat | Truncate | Unlink | Execve => &[(None, 0)],
        Openat | Openat2 | Unlinkat | Execveat => &[(Some(0), 1)],
        Rename | Link => &[(None, 0), (None, 1)],
        Renameat | Renameat2 | Linkat => &[(Some(0), 1), (Some(2), 3)],
        _ => &[],
    }
}

/// Returns whether /proc/PID/io counts the call in syscr and in syscw (fs/read_write.c of the kernel).
pub fn counted_as(op: Op) -> (bool, bool) {
    use Op::*;
    match op {
        Read | Pread | Readv | Preadv | Preadv2 => (true, false),
        Write | Pwrite | Writev | Pwritev | Pwritev2 => (false, true),
        Sendfile | CopyFileRange => (true, true),
        _ => (false, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_operations_map_to_each_other() {
        for &each in Op::ALL {
            match each.number() {
                Some(number) => assert_eq!(op(number), Some(each)),
                None => assert_eq!(std::env::consts::ARCH, "aarch64", "{each:?} has no number"),
            }
        }
        assert_eq!(op(libc::SYS_getpid), None);
        assert_eq!(op(-1), None);
        assert_eq!(op(100_000), None);
    }

    #[test]
    fn the_numbers_are_those_of_the_kernels_headers() {
        let header = match std::env::consts::ARCH {
            "x86_64" => "asm/unistd_64.h",
            _ => "asm-generic/unistd.h",
        };
        // Debian has a directory for each architecture.
        let directories = ["/usr/include", "/usr/include/x86_64-linux-gnu"];
        let text = directories.iter().find_map(|one| std::fs::read_to_string(format!("{one}/{header}")).ok());
        let text = text.expect("the C compiler has the kernel's headers");
        // `#define __NR_read 0`, and `__NR3264_lseek` for calls that have other arguments on 32 bits.
        let defined: Vec<(&str, i64)> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#define __NR")?.split_once(' '))
            .filter_map(|(name, number)| Some((name.split_once('_')?.1, number.trim().parse().ok()?)))
            .collect();
        for op in Op::ALL.iter().filter(|op| op.number().is_some()) {
            let of_op = |(name, _): &&(&str, i64)| *name == op.name();
            let number =
                defined.iter().find(of_op).unwrap_or_else(|| panic!("{} is not defined", op.name())).1;
            assert_eq!(op.number(), Some(number), "{}", op.name());
        }
        assert_eq!(Op::Read.number(), Some(libc::SYS_read));
    }

    #[test]
    fn input_and_output_of_copying_calls_differ() {
        let args = [10, 11, 12, 13, 14, 15];
        assert_eq!((input(Op::Sendfile, &args), output(Op::Sendfile, &args)), (Some(11), Some(10)));
        assert_eq!((input(Op::Splice, &args), output(Op::Splice, &args)), (Some(10), Some(12)));
        assert_eq!((input(Op::Tee, &args), output(Op::Tee, &args)), (Some(10), Some(11)));
        assert_eq!(descriptor(Op::Mmap, &[0, 0, 0, libc::MAP_ANONYMOUS as u64, u64::MAX, 0]), None);
        assert_eq!(descriptor(Op::Fsync, &args), Some(10));
        assert_eq!(requested_bytes(Op::Writev, &args), None);
    }

    #[test]
    fn a_peek_leaves_its_input() {
        let with = |at: usize, flags: i32| {
            let mut args = [3, 0, 100, 0, 0, 0];
            args[at] = flags as u64;
            args
        };
        for (op, at) in [(Op::Recvfrom, 3), (Op::Recvmsg, 2), (Op::Recvmmsg, 3)] {
            assert!(leaves_input(op, &with(at, libc::MSG_PEEK | libc::MSG_TRUNC)), "{op:?}");
            assert!(leaves_input(op, &with(at, libc::MSG_ERRQUEUE)), "{op:?}");
            assert!(!leaves_input(op, &with(at, libc::MSG_WAITALL)), "{op:?}");
            assert!(counts_discarded(op, &with(at, libc::MSG_TRUNC)), "{op:?}");
        }
        assert!(leaves_input(Op::Tee, &[0; 6]) && !leaves_input(Op::Splice, &[0; 6]));
        assert!(!leaves_input(Op::Pread, &with(3, libc::MSG_PEEK)), "its fourth argument is an offset");
    }

    #[test]
    fn calls_of_32_bit_programs_are_foreign() {
        assert!(is_foreign(0x4000_0003, 1));
        assert!(!is_foreign(NATIVE_ARCH, 1));
        assert!(!is_foreign(NATIVE_ARCH, u64::MAX), "the number of a restarted call is -1");
    }
}
