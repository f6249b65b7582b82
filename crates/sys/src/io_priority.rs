//! The priority of a process at the device: ioprio_set(2).

use std::io;

/// `IOPRIO_WHO_PROCESS` (linux/ioprio.h); with the number 0 it is the calling thread.
const WHO_PROCESS: libc::c_long = 1;
/// `IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)`: the class is in the bits from 13.
const IDLE: libc::c_long = 3 << 13;

/// Lets the calling thread, and the threads that it starts later, use the device only when no other process does. Only some
/// I/O schedulers obey (BFQ, mq-deadline).
pub fn be_idle() -> io::Result<()> {
    // SAFETY: the call takes numbers.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, IDLE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
