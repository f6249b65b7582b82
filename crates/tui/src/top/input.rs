//! Waits for input of the terminal and notices its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use weir_sys::file_system::is_terminal;

use crate::terminal_events::terminal_events;

/// The terminal that crossterm reads: standard input, or the controlling terminal if standard input is none.
pub struct TerminalInput(Option<File>);

impl TerminalInput {
    /// Opens the controlling terminal if standard input is no terminal.
    pub fn open() -> io::Result<TerminalInput> {
        let other = if is_terminal(io::stdin()) { None } else { Some(File::open("/dev/tty")?) };
        Ok(TerminalInput(other))
    }

    /// Waits for input. Returns false at the end of `timeout` and after a signal. Fails with EIO once the terminal is closed:
    /// crossterm does not notice that and reads its end without a pause.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let stdin = io::stdin();
        let terminal: BorrowedFd<'_> = self.0.as_ref().map_or(stdin.as_fd(), File::as_fd);
        let events = terminal_events(terminal, timeout)?;
        if events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(Errno::IO.into());
        }
        Ok(events.contains(PollFlags::IN))
    }
}
