//! Copies the size of the user's terminal window to the program's terminals.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

/// Returns the window size of weir's standard streams or controlling terminal.
fn window_size(own: &[File; 2]) -> Option<Winsize> {
    let size = |fd: BorrowedFd<'_>| tcgetwinsize(fd).ok().filter(|size| size.ws_col > 0);
    let [out, error] = own;
    size(out.as_fd())
        .or_else(|| size(error.as_fd()))
        .or_else(|| size(io::stdin().as_fd()))
        .or_else(|| size(File::open("/dev/tty").ok()?.as_fd()))
}

/// Sets a terminal's window size to that of weir's terminal, if weir has one.
pub(super) fn copy_window_size(own: &[File; 2], terminal: BorrowedFd<'_>) {
    if let Some(size) = window_size(own) {
        let _unsupported = tcsetwinsize(terminal, size);
    }
}
