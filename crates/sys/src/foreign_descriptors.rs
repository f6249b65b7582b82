//! Copies of other processes' descriptors by pidfd_getfd(2) (Linux 5.6), which seccomp filters of containers forbid: Docker's default
//! profile allows it only with CAP_SYS_PTRACE.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use crate::pidfd;

/// The advice where it is forbidden.
pub const FORBIDDEN_ADVICE: &str =
    "a seccomp filter such as Docker's forbids it: start the container with --cap-add SYS_PTRACE";

/// Duplicates a descriptor of a thread: the same open file with the same offset.
pub fn duplicate(tid: u32, fd: i32) -> io::Result<OwnedFd> {
    let pidfd = pidfd::open_process(tid).or_else(|_| pidfd::open_thread(tid))?;
    Ok(pidfd_getfd(pidfd, fd, PidfdGetfdFlags::empty())?)
}

/// Returns the error with which the kernel or a filter forbids to duplicate even an own descriptor; None if it is permitted.
pub fn forbidden() -> Option<io::Error> {
    // Permitted, the call fails with EBADF: fs.nr_open is smaller than this number.
    duplicate(std::process::id(), i32::MAX).err().filter(is_refusal)
}

/// Returns whether an error means that the call itself is forbidden or unknown, not that this descriptor cannot be duplicated.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn an_own_descriptor_is_duplicated() {
        let (reader, _writer) = io::pipe().unwrap();
        let own = std::process::id();
        let copy = duplicate(own, reader.as_raw_fd()).unwrap();
        assert!(crate::ptrace::same_file((own, reader.as_raw_fd()), (own, copy.as_raw_fd())));
        assert!(forbidden().is_none());
        let absent = duplicate(own, 9999).unwrap_err();
        assert!(absent.raw_os_error() == Some(libc::EBADF) && !is_refusal(&absent));
    }
}
