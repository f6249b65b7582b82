//! Decides which blocking system calls a stop may interrupt unnoticed.

use rustix::net::sockopt::{Timeout, socket_timeout};
use weir_model::trace::Op;
use weir_sys::foreign_descriptors::{duplicate, forbidden};
use weir_sys::ptrace::interrupt::{SOCKET, has_no_short_timeout, may_interrupt};
use weir_sys::ptrace::registers::SyscallRegisters;
use weir_sys::ptrace::repeat::has_known_timeout;
use weir_sys::{proc, syscalls};

/// Facts about a thread before a stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadFacts {
    /// Its process has a scheduler of Go.
    pub is_go: bool,
    /// A stop has ended one of its receives with EINTR: the socket has a timeout.
    pub times_receives: bool,
}

/// Returns whether a thread can be stopped unnoticed. A thread that blocks in a write is not stopped: the kernel has perhaps
/// written a part of its bytes.
pub(super) fn can_interrupt(pid: u32, tid: u32, facts: ThreadFacts) -> bool {
    let state = proc::thread_state(tid);
    let restarts = match &state {
        proc::ThreadState::Waiting { number, .. } if syscalls::op(*number).is_some_and(Op::writes) => {
            return false;
        }
        proc::ThreadState::Waiting { number, args } if facts.is_go && is_poll_of_go(*number, args) => true,
        proc::ThreadState::Waiting { number, args } => restarts_unchanged(tid, *number, args, facts),
        _ => false,
    };
    restarts || may_interrupt(pid, &state, false)
}

/// Returns whether a call of a Go program is the poll of its scheduler, which repeats it at EINTR and computes the timeout again.
/// Signals by which the scheduler itself interrupts threads have the same effect.
pub(super) fn is_poll_of_go(number: i64, args: &[u64; 6]) -> bool {
    /// The size of `netpoll`'s array.
    const EVENTS: u64 = 128;
    number == libc::SYS_epoll_pwait && args[2] == EVENTS && args[4] == 0
}

/// Returns whether an interrupted call has done nothing and can be made again with the same result.
fn restarts_unchanged(tid: u32, number: i64, args: &[u64; 6], facts: ThreadFacts) -> bool {
    // On other architectures weir does not see that a call was interrupted.
    if !cfg!(target_arch = "x86_64") || !syscalls::can_be_repeated(number) {
        return false;
    }
    let may_return_part = |flags: u64| flags & libc::MSG_WAITALL as u64 != 0;
    match syscalls::op(number) {
        Some(Op::Read | Op::Readv | Op::Accept | Op::Accept4) => has_no_timeout(tid, args[0] as i32, facts),
        Some(Op::Recvfrom) => !may_return_part(args[3]) && has_no_timeout(tid, args[0] as i32, facts),
        Some(Op::Recvmsg) => !may_return_part(args[2]) && has_no_timeout(tid, args[0] as i32, facts),
        Some(_) => false,
        // It is made again with the rest of its timeout.
        None => has_no_short_timeout(number, args) || has_known_timeout(number, args),
    }
}

/// Returns whether a descriptor is a socket without SO_RCVTIMEO. Where the socket cannot be asked (pidfd_getfd(2) is forbidden), a
/// socket counts as one without until a stop has shown that it has a timeout: that receive is made again, and waits for up to twice
/// the timeout.
fn has_no_timeout(tid: u32, fd: i32, facts: ThreadFacts) -> bool {
    match duplicate(tid, fd) {
        Ok(file) => socket_timeout(file, Timeout::Recv) == Ok(None),
        Err(_) => !facts.times_receives && is_socket(tid, fd) && forbidden().is_some(),
    }
}

fn is_socket(tid: u32, fd: i32) -> bool {
    proc::descriptor(tid, fd).is_some_and(|link| link.exact().starts_with(SOCKET))
}

/// Returns whether a call that a stop has ended with EINTR is a receive: after a stop the kernel restarts those without a timeout.
pub(super) fn is_receive(tid: u32, call: &SyscallRegisters) -> bool {
    let receives = matches!(
        syscalls::op(call.number),
        Some(Op::Read | Op::Readv | Op::Accept | Op::Accept4 | Op::Recvfrom | Op::Recvmsg)
    );
    receives && is_socket(tid, call.args[0] as i32)
}
