//! What wakes the thread that waits for stops: an order, or a stop itself, of which the kernel tells by SIGCHLD.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};

/// How long a stop may have to wait where there is no bell.
const WITHOUT: Duration = Duration::from_millis(1);

/// Rings for whoever waits at it.
#[derive(Debug)]
pub(super) struct TracerWakeup(Option<Inner>);

#[derive(Debug)]
struct Inner {
    heard: OwnedFd,
    rung: OwnedFd,
    stops: SigId,
}

impl TracerWakeup {
    /// One that rings at each stop. Without descriptors for it there is none, and waiting is short.
    pub fn new() -> Self {
        Self(Self::hang_up().ok())
    }

    fn hang_up() -> io::Result<Inner> {
        let (heard, rung) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let stops = pipe::register(libc::SIGCHLD, rung.try_clone()?)?;
        Ok(Inner { heard, rung, stops })
    }

    /// Wakes the one who waits.
    pub fn ring(&self) {
        // A full pipe has rung already.
        let _ = self.0.as_ref().map(|inner| rustix::io::write(&inner.rung, b"!"));
    }

    /// Until it rings, or has rung since the last time, but no longer than this.
    pub fn wait(&self, most: Duration) {
        let Some(inner) = &self.0 else { return std::thread::sleep(most.min(WITHOUT)) };
        let timeout = most.try_into().ok();
        // An interruption is a ring.
        let _ = poll(&mut [PollFd::from_borrowed_fd(inner.heard.as_fd(), PollFlags::IN)], timeout.as_ref());
        let _empty = rustix::io::read(&inner.heard, &mut [0u8; 256]);
    }
}

impl Drop for TracerWakeup {
    fn drop(&mut self) {
        if let Some(inner) = &self.0 {
            unregister(inner.stops);
        }
    }
}

/// While it lives, this thread does not hear SIGCHLD: the thread that waits does.
pub(super) struct SigchldBlocked(libc::sigset_t);

impl SigchldBlocked {
    pub fn now() -> Self {
        Self(mask(libc::SIG_BLOCK, &stops()))
    }
}

impl Drop for SigchldBlocked {
    fn drop(&mut self) {
        mask(libc::SIG_SETMASK, &self.0);
    }
}

/// This thread hears it, whatever weir was started with.
pub(super) fn listen() {
    mask(libc::SIG_UNBLOCK, &stops());
}

fn stops() -> libc::sigset_t {
    // SAFETY: zeroed is a valid sigset_t, which is made anew.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        set
    }
}

/// Changes this thread's mask; answers what it was.
fn mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: zeroed is a valid sigset_t, which is filled; `set` is one.
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
    fn a_ring_before_the_wait_is_heard() {
        let bell = TracerWakeup::new();
        bell.ring();
        bell.ring();
        let start = Instant::now();
        bell.wait(LONG);
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn the_end_of_a_child_rings_for_the_thread_that_listens() {
        let bell = TracerWakeup::new();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                listen();
                let start = Instant::now();
                bell.wait(LONG);
                start.elapsed()
            });
            let _deaf = SigchldBlocked::now();
            std::process::Command::new("true").status().unwrap();
            assert!(waits.join().unwrap() < LONG);
        });
    }
}
