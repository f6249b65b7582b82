//! Decides whether a ptrace stop would change the result of the system call in which a thread blocks.

use weir_model::trace::Op;

use super::sockets::Socket;
use crate::proc::{self, ThreadState};
use crate::syscalls;

/// The size of a write to a pipe up to which it is atomic (pipe(7)).
pub const PIPE_BUF: u64 = 4096;

/// Returns whether a stop now is invisible to the program. With `only_blocked`, a running thread may not be stopped
/// either, because it could enter a fragile call before the stop.
pub fn may_interrupt(pid: u32, tid: u32, only_blocked: bool) -> bool {
    match proc::thread_state(tid) {
        ThreadState::Running => !only_blocked,
        ThreadState::Waiting { number, args } => resumes_unchanged(pid, number, &args),
        ThreadState::Unknown => false,
    }
}

/// Returns whether the kernel resumes this blocked call unchanged after a stop.
fn resumes_unchanged(pid: u32, number: i64, args: &[u64; 6]) -> bool {
    use Op::*;
    match syscalls::op(number) {
        Some(Read | Readv) => restarts_read(pid, args[0]) || restarts_receive(pid, args[0]),
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
        Some(Sendfile | Splice | Tee | Vmsplice | Sendmsg | IoUringEnter) => true,
        Some(_) => false,
        None => syscalls::fails_with_eintr(number),
    }
}

/// The prefix of a socket's link in /proc/PID/fd (proc_pid_fd(5)).
const SOCKET: &str = "socket:";

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
