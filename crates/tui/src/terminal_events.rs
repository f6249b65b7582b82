//! Waits for input of a terminal.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits for input of `terminal`, or for its end, by poll(2). Returns no event at the end of `timeout`, of which at most a
/// second counts, and after a signal.
pub fn terminal_events(terminal: BorrowedFd<'_>, timeout: Duration) -> io::Result<PollFlags> {
    let mut descriptors = [PollFd::new(&terminal, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos().min(999_999_999) as i64 };
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(descriptors[0].revents()),
        Err(error) => Err(error.into()),
    }
}
