//! System calls of x86-64 and aarch64: their numbers, and what their arguments mean.

use weir_model::trace::Op;

/// Each operation's number here. aarch64 has only the `*at` forms of the calls that name files.
const TABLE: &[(Op, i64)] = &[
    (Op::Read, libc::SYS_read),
    (Op::Pread, libc::SYS_pread64),
    (Op::Readv, libc::SYS_readv),
    (Op::Preadv, libc::SYS_preadv),
    (Op::Preadv2, libc::SYS_preadv2),
    (Op::Recvfrom, libc::SYS_recvfrom),
    (Op::Recvmsg, libc::SYS_recvmsg),
    (Op::Write, libc::SYS_write),
    (Op::Pwrite, libc::SYS_pwrite64),
    (Op::Writev, libc::SYS_writev),
    (Op::Pwritev, libc::SYS_pwritev),
    (Op::Pwritev2, libc::SYS_pwritev2),
    (Op::Sendto, libc::SYS_sendto),
    (Op::Sendmsg, libc::SYS_sendmsg),
    (Op::Sendfile, libc::SYS_sendfile),
    (Op::Splice, libc::SYS_splice),
    (Op::Tee, libc::SYS_tee),
    (Op::Vmsplice, libc::SYS_vmsplice),
    (Op::CopyFileRange, libc::SYS_copy_file_range),
    (Op::Openat, libc::SYS_openat),
    (Op::Openat2, libc::SYS_openat2),
    (Op::Close, libc::SYS_close),
    (Op::CloseRange, libc::SYS_close_range),
    (Op::Dup, libc::SYS_dup),
    (Op::Dup3, libc::SYS_dup3),
    (Op::Fcntl, libc::SYS_fcntl),
    (Op::Pipe2, libc::SYS_pipe2),
    (Op::Socket, libc::SYS_socket),
    (Op::Socketpair, libc::SYS_socketpair),
    (Op::Accept, libc::SYS_accept),
    (Op::Accept4, libc::SYS_accept4),
    (Op::Eventfd2, libc::SYS_eventfd2),
    (Op::MemfdCreate, libc::SYS_memfd_create),
    (Op::Lseek, libc::SYS_lseek),
    (Op::Fsync, libc::SYS_fsync),
    (Op::Fdatasync, libc::SYS_fdatasync),
    (Op::SyncFileRange, libc::SYS_sync_file_range),
    (Op::Sync, libc::SYS_sync),
    (Op::Syncfs, libc::SYS_syncfs),
    (Op::Msync, libc::SYS_msync),
    (Op::Fallocate, libc::SYS_fallocate),
    (Op::Truncate, libc::SYS_truncate),
    (Op::Ftruncate, libc::SYS_ftruncate),
    (Op::Fadvise, libc::SYS_fadvise64),
    (Op::Renameat, libc::SYS_renameat),
    (Op::Renameat2, libc::SYS_renameat2),
    (Op::Unlinkat, libc::SYS_unlinkat),
    (Op::Linkat, libc::SYS_linkat),
    (Op::Mmap, libc::SYS_mmap),
    (Op::IoUringSetup, libc::SYS_io_uring_setup),
    (Op::IoUringEnter, libc::SYS_io_uring_enter),
    (Op::IoSubmit, libc::SYS_io_submit),
    (Op::Kill, libc::SYS_kill),
    (Op::Tgkill, libc::SYS_tgkill),
    (Op::Execve, libc::SYS_execve),
    (Op::Execveat, libc::SYS_execveat),
    #[cfg(target_arch = "x86_64")]
    (Op::Open, libc::SYS_open),
    #[cfg(target_arch = "x86_64")]
    (Op::Creat, libc::SYS_creat),
    #[cfg(target_arch = "x86_64")]
    (Op::Dup2, libc::SYS_dup2),
    #[cfg(target_arch = "x86_64")]
    (Op::Pipe, libc::SYS_pipe),
    #[cfg(target_arch = "x86_64")]
    (Op::Rename, libc::SYS_rename),
    #[cfg(target_arch = "x86_64")]
    (Op::Unlink, libc::SYS_unlink),
    #[cfg(target_arch = "x86_64")]
    (Op::Link, libc::SYS_link),
];

/// Above every number in [`TABLE`].
const NUMBERS: usize = 512;

const BY_NUMBER: [Option<Op>; NUMBERS] = {
    let mut ops = [None; NUMBERS];
    let mut entry = 0;
    while entry < TABLE.len() {
        ops[TABLE[entry].1 as usize] = Some(TABLE[entry].0);
        entry += 1;
    }
    ops
};

/// AUDIT_ARCH of weir's own architecture, as seccomp and PTRACE_GET_SYSCALL_INFO say it.
#[cfg(target_arch = "x86_64")]
pub const NATIVE_ARCH: u32 = 0xC000_003E;
/// AUDIT_ARCH of weir's own architecture, as seccomp and PTRACE_GET_SYSCALL_INFO say it.
#[cfg(target_arch = "aarch64")]
pub const NATIVE_ARCH: u32 = 0xC000_00B7;

/// The operation that a system call of this number is; None for those that weir does not follow.
pub fn op(number: i64) -> Option<Op> {
    *BY_NUMBER.get(usize::try_from(number).ok()?)?
}

/// Its number; None where this architecture has no such call.
pub fn number(op: Op) -> Option<i64> {
    TABLE.iter().find(|entry| entry.0 == op).map(|entry| entry.1)
}

/// Whether a call is of another numbering: 32-bit on x86-64 and aarch64, or x32.
pub fn foreign(arch: u32, number: u64) -> bool {
    const X32_BIT: u64 = 0x4000_0000;
    arch != NATIVE_ARCH || (cfg!(target_arch = "x86_64") && number != u64::MAX && number & X32_BIT != 0)
}

/// The names of other calls that programs wait in.
pub fn waiting_name(number: i64) -> Option<&'static str> {
    Some(match number {
        libc::SYS_futex => "futex",
        libc::SYS_wait4 => "wait4",
        libc::SYS_waitid => "waitid",
        libc::SYS_ppoll => "ppoll",
        libc::SYS_pselect6 => "pselect6",
        libc::SYS_epoll_pwait => "epoll_pwait",
        libc::SYS_nanosleep => "nanosleep",
        libc::SYS_clock_nanosleep => "clock_nanosleep",
        libc::SYS_restart_syscall => "restart_syscall",
        libc::SYS_rt_sigtimedwait => "rt_sigtimedwait",
        libc::SYS_rt_sigsuspend => "rt_sigsuspend",
        libc::SYS_flock => "flock",
        libc::SYS_connect => "connect",
        libc::SYS_semop => "semop",
        libc::SYS_semtimedop => "semtimedop",
        libc::SYS_msgrcv => "msgrcv",
        libc::SYS_msgsnd => "msgsnd",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => "poll",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => "select",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => "epoll_wait",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => "pause",
        _ => return None,
    })
}

/// Whether a wait in this call goes on by itself when a tracer stops it for a moment. Those not named here end
/// with EINTR (epoll_wait, semop, rt_sigtimedwait, socket calls with a timeout) or with a part of the work done.
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

/// Whether a wait in this call would end with EINTR when a tracer stops it, whatever its arguments.
pub fn broken_off(number: i64) -> bool {
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

/// Whether this call, when it ended with EINTR, has done nothing and may simply be made again.
pub fn may_be_made_again(number: i64) -> bool {
    match op(number) {
        Some(op) => op.reads() || op.writes() || matches!(op, Op::Accept | Op::Accept4),
        // connect(2) goes on by itself, and would say EALREADY.
        None => broken_off(number) && number != libc::SYS_connect,
    }
}

/// Bytes asked for; None where only memory says (vectors, messages) and of calls that move none.
pub fn asked_bytes(op: Op, args: &[u64; 6]) -> Option<u64> {
    match op {
        Op::Read | Op::Pread | Op::Recvfrom | Op::Write | Op::Pwrite | Op::Sendto | Op::Tee => Some(args[2]),
        Op::Sendfile => Some(args[3]),
        Op::Splice | Op::CopyFileRange => Some(args[4]),
        _ => None,
    }
}

/// The descriptor that bytes come from.
pub fn input(op: Op, args: &[u64; 6]) -> Option<i32> {
    match op {
        Op::Sendfile => Some(args[1] as i32),
        Op::Splice | Op::Tee | Op::CopyFileRange => Some(args[0] as i32),
        _ if op.reads() => Some(args[0] as i32),
        _ => None,
    }
}

/// The descriptor that bytes go to.
pub fn output(op: Op, args: &[u64; 6]) -> Option<i32> {
    match op {
        Op::Sendfile => Some(args[0] as i32),
        Op::Splice | Op::CopyFileRange => Some(args[2] as i32),
        Op::Tee => Some(args[1] as i32),
        _ if op.writes() => Some(args[0] as i32),
        _ => None,
    }
}

/// The descriptor that a call is about: of calls that copy, the one that bytes go to. None for those that
/// make a descriptor and those that have to do with none.
pub fn descriptor(op: Op, args: &[u64; 6]) -> Option<i32> {
    use Op::*;
    match op {
        Close | CloseRange | Dup | Dup2 | Dup3 | Fcntl | Accept | Accept4 | Lseek | Fsync | Fdatasync
        | SyncFileRange | Syncfs | Fallocate | Ftruncate | Fadvise | IoUringEnter => Some(args[0] as i32),
        Mmap if args[3] & libc::MAP_ANONYMOUS as u64 == 0 => Some(args[4] as i32),
        _ => output(op, args).or_else(|| input(op, args)),
    }
}

/// Where the bytes of a call are in the program's memory, when they are in one piece.
pub fn buffer(op: Op, args: &[u64; 6]) -> Option<u64> {
    use Op::*;
    matches!(op, Read | Pread | Recvfrom | Write | Pwrite | Sendto).then_some(args[1])
}

/// Where the pieces are listed: the address of an array of iovec and its length.
pub fn vector(op: Op, args: &[u64; 6]) -> Option<(u64, u64)> {
    use Op::*;
    matches!(op, Readv | Preadv | Preadv2 | Writev | Pwritev | Pwritev2 | Vmsplice)
        .then_some((args[1], args[2]))
}

/// Where a struct msghdr is.
pub fn message(op: Op, args: &[u64; 6]) -> Option<u64> {
    matches!(op, Op::Recvmsg | Op::Sendmsg).then_some(args[1])
}

/// The offset in the file that a call gives itself.
pub fn offset(op: Op, args: &[u64; 6]) -> Option<u64> {
    // Of preadv2 and pwritev2, -1 is the file's own offset.
    let own = |offset: u64| (offset != u64::MAX).then_some(offset);
    if op.positioned() { own(args[3]) } else { None }
}

/// Which arguments point to paths, in the order from, to; and before each the argument that has its
/// directory's descriptor, if any.
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

/// Whether the kernel counts it in /proc/PID/io: as a reading call, as a writing call.
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
    fn every_operation_has_a_number_and_the_number_says_the_operation() {
        for &each in Op::ALL {
            match number(each) {
                Some(number) => assert_eq!(op(number), Some(each)),
                None => assert_eq!(std::env::consts::ARCH, "aarch64", "{each:?} has no number"),
            }
        }
        assert_eq!(op(libc::SYS_getpid), None);
        assert_eq!(op(-1), None);
        assert_eq!(op(100_000), None);
    }

    #[test]
    fn both_ends_of_calls_that_copy_are_told_apart() {
        let args = [10, 11, 12, 13, 14, 15];
        assert_eq!((input(Op::Sendfile, &args), output(Op::Sendfile, &args)), (Some(11), Some(10)));
        assert_eq!((input(Op::Splice, &args), output(Op::Splice, &args)), (Some(10), Some(12)));
        assert_eq!((input(Op::Tee, &args), output(Op::Tee, &args)), (Some(10), Some(11)));
        assert_eq!(descriptor(Op::Mmap, &[0, 0, 0, libc::MAP_ANONYMOUS as u64, u64::MAX, 0]), None);
        assert_eq!(descriptor(Op::Fsync, &args), Some(10));
        assert_eq!(asked_bytes(Op::Writev, &args), None);
        assert_eq!(offset(Op::Preadv2, &[0, 0, 0, u64::MAX, 0, 0]), None);
    }

    #[test]
    fn calls_of_32_bit_programs_are_foreign() {
        assert!(foreign(0x4000_0003, 1));
        assert!(!foreign(NATIVE_ARCH, 1));
        assert!(!foreign(NATIVE_ARCH, u64::MAX), "a restarted call's number is -1");
    }
}
