//! Closes descriptors in child processes, and slow ones by a child process.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Closes all descriptors but these, which are sorted. Does nothing before Linux 5.9. Async-signal-safe.
///
/// # Safety
///
/// The process has one thread, and no object of it uses another descriptor from here on.
pub(crate) unsafe fn close_all_but(kept: &[RawFd]) {
    let mut first = 0;
    for &fd in kept {
        if fd > first {
            // SAFETY: the caller's promise.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = fd + 1;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Closes descriptors whose last close takes long, as that of a perf event: a child process holds them until its end, which
/// begins at once. The caller does not wait, and its own end does not either.
///
/// The child is not reaped: call it shortly before the end of the process. Without a child they are closed here.
pub fn close_by_child(mut descriptors: Vec<OwnedFd>) {
    if descriptors.is_empty() {
        return;
    }
    descriptors.sort_unstable_by_key(AsRawFd::as_raw_fd);
    let kept: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: the child makes only async-signal-safe calls, uses no object of its parent, and never returns.
    unsafe {
        if libc::fork() == 0 {
            close_all_but(&kept);
            libc::_exit(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_child_closes_the_descriptors_and_keeps_no_others_open() {
        let [(closed, mut end), (own, mut own_end)] =
            [UnixStream::pair().unwrap(), UnixStream::pair().unwrap()];
        close_by_child(vec![closed.into()]);
        assert_eq!(end.read(&mut [0]).unwrap(), 0, "the peer of the closed socket");
        drop(own);
        assert_eq!(own_end.read(&mut [0]).unwrap(), 0, "the peer of a socket that this process has closed");
    }
}
