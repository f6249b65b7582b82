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

/// A child process that closes descriptors.
#[derive(Debug)]
pub struct ClosingChild(libc::pid_t);

impl ClosingChild {
    /// Reaps the child if it has ended. Returns whether it has. Only the thread that started it may ask.
    pub fn has_ended(&self) -> bool {
        // SAFETY: a child of this thread that has not been waited for; the status is not wanted.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), libc::WNOHANG) != 0 }
    }
}

/// Closes descriptors whose last close takes long, as that of a perf event: a child process holds them until its end, which
/// begins at once. The caller does not wait, and its own end does not either.
///
/// Returns the child, which the caller reaps unless its own end is near. Without a child the descriptors are closed here.
pub fn close_by_child(mut descriptors: Vec<OwnedFd>) -> Option<ClosingChild> {
    if descriptors.is_empty() {
        return None;
    }
    descriptors.sort_unstable_by_key(AsRawFd::as_raw_fd);
    let kept: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: the child makes only async-signal-safe calls, uses no object of its parent, and never returns.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            close_all_but(&kept);
            libc::_exit(0);
        }
        child
    };
    (child > 0).then_some(ClosingChild(child))
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
        let child = close_by_child(vec![closed.into()]).unwrap();
        assert_eq!(end.read(&mut [0]).unwrap(), 0, "the peer of the closed socket");
        drop(own);
        assert_eq!(own_end.read(&mut [0]).unwrap(), 0, "the peer of a socket that this process has closed");
        while !child.has_ended() {
            std::thread::yield_now();
        }
        assert!(!std::path::Path::new(&format!("/proc/self/task/{}", child.0)).exists(), "it is reaped");
    }
}
