//! The names of the system calls in which programs block.

use crate::living_thread;

/// Returns the name of the system call in which a thread (by PID: the main thread, or another one if it has ended) blocks.
/// Returns an empty string if it runs, if the call is none of this module's table, or if /proc/PID/syscall cannot be read.
pub fn current(tid: u32) -> String {
    let of_thread = |tid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
        name(text.split_ascii_whitespace().next()?.parse().ok()?)
    };
    living_thread::or_by_other(tid, of_thread).unwrap_or_default().to_string()
}

/// Returns the name of the system call `number` if it can block for a long time.
pub fn name(number: libc::c_long) -> Option<&'static str> {
    let found = BLOCKING.iter().chain(&X86_ONLY).find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}

macro_rules! calls {
    ($($number:ident $name:literal),* $(,)?) => { [$((libc::$number, $name)),*] };
}

const BLOCKING: [(libc::c_long, &str); 46] = calls![
    SYS_read "read", SYS_write "write", SYS_readv "readv", SYS_writev "writev",
    SYS_pread64 "pread64", SYS_pwrite64 "pwrite64", SYS_preadv "preadv", SYS_pwritev "pwritev",
    SYS_sendfile "sendfile", SYS_splice "splice", SYS_tee "tee", SYS_vmsplice "vmsplice",
    SYS_copy_file_range "copy_file_range", SYS_fsync "fsync", SYS_fdatasync "fdatasync",
    SYS_ppoll "ppoll", SYS_pselect6 "pselect6", SYS_epoll_pwait "epoll_pwait", SYS_epoll_pwait2 "epoll_pwait2",
    SYS_nanosleep "nanosleep", SYS_clock_nanosleep "clock_nanosleep", SYS_futex "futex",
    SYS_wait4 "wait4", SYS_waitid "waitid", SYS_rt_sigsuspend "rt_sigsuspend",
    SYS_rt_sigtimedwait "rt_sigtimedwait", SYS_recvfrom "recvfrom", SYS_recvmsg "recvmsg",
    SYS_recvmmsg "recvmmsg", SYS_sendto "sendto", SYS_sendmsg "sendmsg", SYS_sendmmsg "sendmmsg", SYS_accept "accept",
    SYS_accept4 "accept4", SYS_connect "connect", SYS_flock "flock", SYS_fcntl "fcntl",
    SYS_semop "semop", SYS_semtimedop "semtimedop", SYS_msgrcv "msgrcv", SYS_msgsnd "msgsnd",
    SYS_mq_timedreceive "mq_timedreceive", SYS_io_getevents "io_getevents",
    SYS_io_uring_enter "io_uring_enter", SYS_ioctl "ioctl", SYS_restart_syscall "restart_syscall",
];

/// Calls that newer architectures do not have; each has a replacement in [`BLOCKING`].
#[cfg(target_arch = "x86_64")]
const X86_ONLY: [(libc::c_long, &str); 6] = calls![
    SYS_poll "poll", SYS_select "select", SYS_epoll_wait "epoll_wait", SYS_pause "pause",
    SYS_open "open", SYS_vfork "vfork",
];
#[cfg(not(target_arch = "x86_64"))]
const X86_ONLY: [(libc::c_long, &str); 0] = [];
