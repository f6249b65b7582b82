//! Descriptors of processes and threads (pidfd_open(2)).

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// PIDFD_THREAD of linux/pidfd.h, since Linux 6.9.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// Opens a process. Fails for a thread that is not the first one of its process.
pub fn open_process(pid: u32) -> io::Result<OwnedFd> {
    open(pid, PidfdFlags::empty())
}

/// Opens a thread, which can outlive the first one of its process. Fails before Linux 6.9.
pub(crate) fn open_thread(tid: u32) -> io::Result<OwnedFd> {
    open(tid, PIDFD_THREAD)
}

fn open(id: u32, flags: PidfdFlags) -> io::Result<OwnedFd> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(pid, flags)?)
}
