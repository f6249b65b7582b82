//! The size of the window that the user sees, passed on to the program's terminals.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

/// The window that weir itself is in: of what it writes to, or reads from, or its controlling terminal.
fn window(own: &[File; 2]) -> Option<Winsize> {
    let of = |fd: BorrowedFd<'_>| tcgetwinsize(fd).ok().filter(|size| size.ws_col > 0);
    let [out, error] = own;
    of(out.as_fd())
        .or_else(|| of(error.as_fd()))
        .or_else(|| of(io::stdin().as_fd()))
        .or_else(|| of(File::open("/dev/tty").ok()?.as_fd()))
}

/// Gives a terminal that size, if there is one to give.
pub(super) fn pass(own: &[File; 2], terminal: BorrowedFd<'_>) {
    if let Some(size) = window(own) {
        let _gone = tcsetwinsize(terminal, size);
    }
}
