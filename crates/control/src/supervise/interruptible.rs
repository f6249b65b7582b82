//! In which waits a thread may be stopped for a moment without that its program sees it.

use std::os::fd::OwnedFd;

use rustix::net::sockopt::{Timeout, socket_timeout};
use weir_model::trace::Op;
use weir_sys::ptrace::interrupt::may_interrupt;
use weir_sys::ptrace::registers;
use weir_sys::{proc, syscalls};

use super::tracee_file;

/// A time that begins anew lasts a fraction of the delay longer; for one of this length or more that is little.
const LONG_MS: i32 = 1000;

/// A thread that waits to write is left alone: what it writes is on its way.
pub(crate) fn may_stop(pid: u32, tid: u32) -> bool {
    let again = match proc::thread_state(tid) {
        proc::ThreadState::Waiting { number, .. } if syscalls::op(number).is_some_and(Op::writes) => {
            return false;
        }
        proc::ThreadState::Waiting { number, args } => begins_again(tid, number, &args),
        _ => false,
    };
    again || may_interrupt(pid, tid, false)
}

/// Whether the call, ended by a stop, has done nothing and is made again when the thread goes on.
fn begins_again(tid: u32, number: i64, args: &[u64; 6]) -> bool {
    // Elsewhere it is not seen that a call was broken.
    if !cfg!(target_arch = "x86_64") || !syscalls::may_be_made_again(number) {
        return false;
    }
    let may_end_with_a_part = |flags: u64| flags & libc::MSG_WAITALL as u64 != 0;
    match syscalls::op(number) {
        Some(Op::Read | Op::Readv | Op::Accept | Op::Accept4) => waits_for_ever(tid, args[0] as i32),
        Some(Op::Recvfrom) => !may_end_with_a_part(args[3]) && waits_for_ever(tid, args[0] as i32),
        Some(Op::Recvmsg) => !may_end_with_a_part(args[2]) && waits_for_ever(tid, args[0] as i32),
        Some(_) => false,
        None => has_no_short_time(number, args),
    }
}

/// The descriptor is of a socket without a timeout (SO_RCVTIMEO).
fn waits_for_ever(tid: u32, fd: i32) -> bool {
    let timeout = |file: OwnedFd| socket_timeout(file, Timeout::Recv).ok();
    tracee_file::taken(tid, fd).ok().and_then(timeout) == Some(None)
}

fn has_no_short_time(number: i64, args: &[u64; 6]) -> bool {
    let is_long = |milliseconds: u64| !(0..LONG_MS).contains(&(milliseconds as i32));
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return is_long(args[3]);
    }
    match number {
        libc::SYS_epoll_pwait => is_long(args[3]),
        libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => args[3] == 0,
        libc::SYS_rt_sigtimedwait => args[2] == 0,
        // The time of mq_timedreceive is one of the clock.
        libc::SYS_semop | libc::SYS_msgrcv | libc::SYS_mq_timedreceive => true,
        _ => false,
    }
}

/// Undoes what a stop that was asked for did to the call that it came into: some end with EINTR.
pub(crate) fn mend_call(tid: u32) {
    let Some((number, result)) = registers::broken_call(tid) else { return };
    let broken = result == -i64::from(libc::EINTR) && syscalls::may_be_made_again(number);
    if broken && !proc::has_signal(tid) {
        registers::make_again(tid);
    }
}
