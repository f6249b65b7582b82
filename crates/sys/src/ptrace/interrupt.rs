//! Decides whether a stop changes the result of the system call that a thread is in.

use weir_model::trace::Op;

use super::sockets::Socket;
use crate::proc::{self, ThreadState};
use crate::syscalls;

/// The size of a write to a pipe up to which it is atomic (pipe(7)).
pub const PIPE_BUF: u64 = 4096;

/// Whether a stop now would not be noticed by what the thread does; `shy`: nor while it runs.
pub fn may_interrupt(pid: u32, tid: u32, shy: bool) -> bool {
    match proc::thread_state(tid) {
        ThreadState::Running => !shy,
        ThreadState::Waiting { number, args } => goes_on(pid, number, &args),
        ThreadState::Unknown => false,
    }
}

/// Whether a wait in this call goes on unchanged after a stop.
fn goes_on(pid: u32, number: i64, args: &[u64; 6]) -> bool {
    use Op::*;
    match syscalls::op(number) {
        Some(Read | Readv) => waits_well(pid, args[0]) || receives_well(pid, args[0]),
        Some(Recvfrom) => receives_well(pid, args[0]) && !wants_all(args[3]),
        Some(Recvmsg) => receives_well(pid, args[0]) && !wants_all(args[2]),
        Some(Accept | Accept4) => receives_well(pid, args[0]),
        Some(Write) => args[2] <= PIPE_BUF && waits_well(pid, args[0]) || sends_well(pid, args),
        Some(Sendto) => sends_well(pid, args),
        Some(_) => false,
        None => syscalls::restarts(number),
    }
}

/// Whether a call of this kind, if it came to wait, would end by a stop or be cut short.
pub fn breaks_off(pid: u32, number: i64, args: &[u64; 6]) -> bool {
    use Op::*;
    match syscalls::op(number) {
        Some(Write) => {
            let small = args[2] <= PIPE_BUF;
            match proc::descriptor(pid, args[0] as i32) {
                Some(link) if link.starts_with(SOCKET) => !sends_well(pid, args),
                link => !small && !link.is_some_and(|link| is_file(&link)),
            }
        }
        Some(Writev | Pwrite | Pwritev | Pwritev2) => {
            !proc::descriptor(pid, args[0] as i32).is_some_and(|link| is_file(&link))
        }
        Some(Recvfrom | Recvmsg | Accept | Accept4 | Sendto) => !goes_on(pid, number, args),
        Some(Sendfile | Splice | Tee | Vmsplice | Sendmsg | IoUringEnter) => true,
        Some(_) => false,
        None => syscalls::broken_off(number),
    }
}

/// How the link of a socket's descriptor begins.
const SOCKET: &str = "socket:";

/// A regular file never waits so that a stop would be noticed.
fn is_file(link: &str) -> bool {
    link.starts_with('/') && !link.starts_with("/dev/")
}

/// Pipes, terminals and files.
fn waits_well(pid: u32, fd: u64) -> bool {
    proc::descriptor(pid, fd as i32).is_some_and(|link| link.starts_with('/') || link.starts_with("pipe:"))
}

/// A socket of which a wait for what comes goes on.
fn receives_well(pid: u32, fd: u64) -> bool {
    Socket::of(pid, fd).is_some_and(|socket| socket.waits_to_receive())
}

/// A socket that takes all that is written to it, sendto(2) or write(2), or nothing.
fn sends_well(pid: u32, args: &[u64; 6]) -> bool {
    Socket::of(pid, args[0]).is_some_and(|socket| socket.sends_whole(args[2]))
}

/// Of one that is to be filled a part may have come.
fn wants_all(flags: u64) -> bool {
    flags & libc::MSG_WAITALL as u64 != 0
}
