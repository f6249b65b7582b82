//! `--pty`: terminals for standard output and standard error, which stay apart, and nothing of what goes
//! through them is changed.
//!
//! They are no controlling terminals: the program stays in its session and process group, so that Ctrl-C,
//! Ctrl-Z and the terminal's own signals reach it as ever.

mod relay;
mod size;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

pub use relay::Relay;

/// Both ends of a terminal.
struct PtyPair {
    /// Where what is written to it is read.
    outer: OwnedFd,
    /// What the program gets.
    inner: OwnedFd,
}

/// A terminal that changes no byte and echoes none.
fn pair() -> io::Result<PtyPair> {
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&outer)?;
    unlockpt(&outer)?;
    let inner = ioctl_tiocgptpeer(&outer, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let mut settings = tcgetattr(&inner)?;
    settings.make_raw();
    tcsetattr(&inner, OptionalActions::Now, &settings)?;
    Ok(PtyPair { outer, inner })
}

/// Terminals in place of descriptors 1 and 2 of this process, for a command that it starts next.
pub struct Terminals {
    /// The program's ends; closed in this process once it has started.
    inner: [OwnedFd; 2],
    /// Weir's own.
    outer: [OwnedFd; 2],
    /// What 1 and 2 were.
    own: [File; 2],
}

impl Terminals {
    /// Makes both; nothing of the process is changed yet.
    pub fn open() -> io::Result<Terminals> {
        let (out, error) = (pair()?, pair()?);
        let keep =
            |fd: BorrowedFd<'_>| Ok::<_, io::Error>(File::from(rustix::io::fcntl_dupfd_cloexec(fd, 3)?));
        let own = [keep(io::stdout().as_fd())?, keep(io::stderr().as_fd())?];
        for terminal in [&out.outer, &error.outer] {
            size::pass(&own, terminal.as_fd());
        }
        Ok(Terminals { inner: [out.inner, error.inner], outer: [out.outer, error.outer], own })
    }

    /// Runs `start` with the terminals as descriptors 1 and 2, which it hands to a child, and gives the relay
    /// that carries what comes. Descriptors 1 and 2 are as they were when it returns.
    pub fn during<T>(self, start: impl FnOnce() -> T) -> io::Result<(T, Relay)> {
        let [out, error] = &self.inner;
        rustix::stdio::dup2_stdout(out)?;
        rustix::stdio::dup2_stderr(error)?;
        let started = start();
        rustix::stdio::dup2_stdout(&self.own[0])?;
        rustix::stdio::dup2_stderr(&self.own[1])?;
        let Terminals { inner, outer, own } = self;
        drop(inner);
        Ok((started, Relay::begin(outer, own)?))
    }
}
