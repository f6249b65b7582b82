//! A copy of the seccomp filters of a tracee, for a process that works for it.

use std::io;

use libc::{sock_filter, sock_fprog};

use crate::ptrace;

/// The filters of a tracee, the oldest first. The kernel judges the calls of a process that installs them as it judges those
/// of the tracee, but no program answers for calls that a filter passes to a supervisor: they fail.
#[derive(Debug)]
pub struct SeccompCopy(Vec<Vec<[u8; size_of::<sock_filter>()]>>);

impl SeccompCopy {
    /// Copies the filters of a tracee that the calling thread has stopped. Fails with EACCES without CAP_SYS_ADMIN, and with
    /// EINVAL in strict mode and for a kernel without CONFIG_CHECKPOINT_RESTORE.
    pub fn of(tid: u32) -> io::Result<SeccompCopy> {
        let mut filters = Vec::new();
        loop {
            match ptrace::seccomp_filter(tid, filters.len()) {
                Ok(filter) => filters.push(filter),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(error) => return Err(error),
            }
        }
        // The kernel counts from the newest.
        filters.reverse();
        Ok(SeccompCopy(filters))
    }

    /// Installs the filters in the calling thread. Returns an errno; 0 on success. Async-signal-safe.
    pub fn install(&self) -> i32 {
        // SAFETY: the programs outlive the calls, which only read them; the other arguments are numbers.
        unsafe {
            let (yes, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
            let mut done = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) == 0;
            for filter in &self.0 {
                let program = sock_fprog {
                    len: filter.len() as u16,
                    filter: filter.as_ptr().cast_mut().cast::<sock_filter>(),
                };
                let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, 0);
                // An older filter may allow one of the two calls only.
                done = done
                    && (libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) == 0
                        || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program, none, none) == 0);
            }
            if done { 0 } else { *libc::__errno_location() }
        }
    }
}
