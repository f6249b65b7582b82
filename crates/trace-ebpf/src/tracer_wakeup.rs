//! Wakes the tracer thread: for a request, or for a stop, which the kernel signals by SIGCHLD.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};

/// Polling interval if weir has no free descriptors for a pipe.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A pipe that wakes one waiting thread.
#[derive(Debug)]
pub(super) struct TracerWakeup(Option<WakeupPipe>);

#[derive(Debug)]
struct WakeupPipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// The SIGCHLD handler, which writes to the pipe.
    handler: SigId,
}

impl TracerWakeup {
    /// Installs the SIGCHLD handler. If that fails, [`Self::wait`] polls.
    pub fn new() -> Self {
        Self(Self::install().ok())
    }

    fn install() -> io::Result<WakeupPipe> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let handler = pipe::register(libc::SIGCHLD, writer.try_clone()?)?;
        Ok(WakeupPipe { reader, writer, handler })
    }

    /// Wakes the waiting thread, or the next one that waits.
    pub fn wake(&self) {
        // If the pipe is full, the thread is woken already.
        let _ = self.0.as_ref().map(|pipe| rustix::io::write(&pipe.writer, b"!"));
    }

    /// Waits for a wakeup since the last call, at most `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let Some(pipe) = &self.0 else { return std::thread::sleep(timeout.min(POLL_INTERVAL)) };
        let timeout = timeout.try_into().ok();
        // EINTR counts as a wakeup.
        let _ = poll(&mut [PollFd::from_borrowed_fd(pipe.reader.as_fd(), PollFlags::IN)], timeout.as_ref());
        let _empty = rustix::io::read(&pipe.reader, &mut [0u8; 256]);
    }
}

impl Drop for TracerWakeup {
    fn drop(&mut self) {
        if let Some(pipe) = &self.0 {
            unregister(pipe.handler);
        }
    }
}

/// Blocks SIGCHLD in this thread until it is dropped, so that the kernel delivers the signal to the tracer thread.
pub(super) struct SigchldBlocked(libc::sigset_t);

impl SigchldBlocked {
    pub fn block() -> Self {
        Self(change_mask(libc::SIG_BLOCK, &sigchld()))
    }
}

impl Drop for SigchldBlocked {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, &self.0);
    }
}

/// Unblocks SIGCHLD in this thread; weir may have been started with the signal blocked.
pub(super) fn unblock_sigchld() {
    change_mask(libc::SIG_UNBLOCK, &sigchld());
}

fn sigchld() -> libc::sigset_t {
    // SAFETY: zero bytes are a valid sigset_t, and sigemptyset(3) initializes it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        set
    }
}

/// Changes this thread's signal mask and returns the previous one.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: zero bytes are a valid sigset_t, and `set` is initialized.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(how, set, &mut before);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_wakeup_before_the_wait_ends_it() {
        let wakeup = TracerWakeup::new();
        wakeup.wake();
        wakeup.wake();
        let start = Instant::now();
        wakeup.wait(LONG);
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn the_exit_of_a_child_wakes_the_thread_with_sigchld_unblocked() {
        let wakeup = TracerWakeup::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                unblock_sigchld();
                let start = Instant::now();
                wakeup.wait(LONG);
                start.elapsed()
            });
            let _blocked = SigchldBlocked::block();
            std::process::Command::new("true").status().unwrap();
            assert!(waiting.join().unwrap() < LONG);
        });
    }
}
