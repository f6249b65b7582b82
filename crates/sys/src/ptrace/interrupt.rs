//! Decides whether a ptrace stop would change the result of the system call in which a thread blocks.

use weir_model::trace::Op;

use super::repeat::has_known_timeout;
use super::sockets::Socket;
use crate::proc::{self, ThreadState};
use crate::syscalls;

/// The size of a write to a pipe up to which it is atomic (pipe(7)).
pub const PIPE_BUF: u64 = 4096;

/// Returns whether a stop now of a thread of process `pid` is invisible to the program. With `only_blocked`, a running thread may
/// not be stopped either, because it could enter a fragile call before the stop.
pub fn may_interrupt(pid: u32, state: &ThreadState, only_blocked: bool) -> bool {
    match state {
        ThreadState::Running => !only_blocked,
        ThreadState::Waiting { number, args } => resumes_unchanged(pid, *number, args),
        ThreadState::Unknown => false,
    }
}

/// The shortest timeout in milliseconds that may restart. A restarted timeout ends later, by less than it takes.
const LONG_TIMEOUT_MS: i32 = 1000;

/// Returns whether a thread waits for events or messages in a call that fails with EINTR at a stop and that
/// [`RepeatedCall`](super::repeat::RepeatedCall) makes again: without a timeout or with a long one. With `any_timeout` also with a
/// short one that it can limit: the wait then takes up to twice its timeout, once.
pub fn may_repeat_wait(state: &ThreadState, any_timeout: bool) -> bool {
    // On other architectures weir does not see that a call was interrupted.
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    match state {
        ThreadState::Waiting { number, args } => {
            has_no_short_timeout(*number, args) || any_timeout && has_known_timeout(*number, args)
        }
        _ => false,
    }
}

/// Returns whether this wait, which fails with EINTR at a stop, has no timeout or a long one.
pub fn has_no_short_timeout(number: i64, args: &[u64; 6]) -> bool {
    let is_long = |milliseconds: u64| !(0..LONG_TIMEOUT_MS).contains(&(milliseconds as i32));
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return is_long(args[3]);
    }
    match number {
        libc::SYS_epoll_pwait => is_long(args[3]),
        libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => args[3] == 0,
        libc::SYS_rt_sigtimedwait => args[2] == 0,
        // mq_timedreceive(2) has an absolute timeout, which a restart does not change.
        libc::SYS_semop | libc::SYS_msgrcv | libc::SYS_mq_timedreceive => true,
        _ => false,
    }
}

/// Returns whether the kernel resumes this blocked call unchanged after a stop.
fn resumes_unchanged(pid: u32, number: i64, args: &[u64; 6]) -> bool {
    use Op::*;
    match syscalls::op(number) {
        Some(Read | Readv) => {
            restarts_read(pid, args[0]) || waits_for_event(pid, args[0]) || restarts_receive(pid, args[0])
        }
        Some(Recvfrom) => restarts_receive(pid, args[0]) && !waits_for_all(args[3]),
        Some(Recvmsg) => restarts_receive(pid, args[0]) && !waits_for_all(args[2]),
        Some(Accept | Accept4) => restarts_receive(pid, args[0]),
        Some(Write) => args[2] <= PIPE_BUF && restarts_read(pid, args[0]) || sends_atomically(pid, args),
        Some(Sendto) => sends_atomically(pid, args),
        Some(_) => false,
        None => syscalls::restarts(number),
    }
}

/// Returns whether a stop could make this call fail or return a partial result, if it blocks.
pub fn may_be_cut_short(pid: u32, number: i64, args: &[u64; 6]) -> bool {
    use Op::*;
    match syscalls::op(number) {
        Some(Write) => {
            let small = args[2] <= PIPE_BUF;
            match proc::descriptor(pid, args[0] as i32) {
                Some(link) if link.exact().starts_with(SOCKET) => !sends_atomically(pid, args),
                link => !small && !link.is_some_and(|link| is_file(link.exact())),
            }
        }
        Some(Writev | Pwrite | Pwritev | Pwritev2) => {
            !proc::descriptor(pid, args[0] as i32).is_some_and(|link| is_file(link.exact()))
        }
        Some(Recvfrom | Recvmsg | Accept | Accept4 | Sendto) => !resumes_unchanged(pid, number, args),
        Some(Sendfile | Splice | Tee | Vmsplice | Sendmsg | Sendmmsg | Recvmmsg | IoUringEnter) => true,
        Some(_) => false,
        None => syscalls::fails_with_eintr(number),
    }
}

/// The prefix of a socket's link in /proc/PID/fd (proc_pid_fd(5)).
pub const SOCKET: &str = "socket:";

/// Returns whether the link is that of a file on a file system, whose waits a stop does not interrupt.
fn is_file(link: &str) -> bool {
    link.starts_with('/') && !link.starts_with("/dev/")
}

/// Returns whether the link is that of a path or of a pipe.
fn is_path_or_pipe(link: &str) -> bool {
    link.starts_with('/') || link.starts_with("pipe:")
}

/// Returns whether the kernel restarts a blocked read(2) or small write(2) of this descriptor: pipes, terminals, files.
fn restarts_read(pid: u32, fd: u64) -> bool {
    proc::descriptor(pid, fd as i32).is_some_and(|link| is_path_or_pipe(link.exact()))
}

/// Returns whether the descriptor is one of events, whose blocked read(2) the kernel restarts (signal(7): inotify since Linux 3.8).
fn waits_for_event(pid: u32, fd: u64) -> bool {
    const EVENTS: [&str; 4] =
        ["anon_inode:[eventfd]", "anon_inode:[timerfd]", "anon_inode:[signalfd]", "anon_inode:inotify"];
    proc::descriptor(pid, fd as i32).is_some_and(|link| EVENTS.contains(&link.exact()))
}

/// Returns whether the descriptor is a socket on which the kernel restarts a blocked receive.
fn restarts_receive(pid: u32, fd: u64) -> bool {
    Socket::of(pid, fd).is_some_and(|socket| socket.restarts_receive())
}

/// Returns whether the descriptor is a socket that takes all bytes of this sendto(2) or write(2), or none.
fn sends_atomically(pid: u32, args: &[u64; 6]) -> bool {
    Socket::of(pid, args[0]).is_some_and(|socket| socket.sends_atomically(args[2]))
}

/// Returns whether a receive may have consumed a part of its bytes already (MSG_WAITALL, recv(2)).
fn waits_for_all(flags: u64) -> bool {
    flags & libc::MSG_WAITALL as u64 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_waits_may_restart() {
        let epoll = |timeout: i32| [3, 0x1000, 8, timeout as u32 as u64, 0, 0];
        let restarts = |timeout| has_no_short_timeout(libc::SYS_epoll_pwait, &epoll(timeout));
        assert!(restarts(-1) && restarts(1000));
        assert!(!restarts(0) && !restarts(999));
        assert!(has_known_timeout(libc::SYS_epoll_pwait, &epoll(999)));
        assert!(!has_known_timeout(libc::SYS_connect, &epoll(999)));
        assert!(!has_no_short_timeout(libc::SYS_connect, &epoll(-1)));
    }
}
