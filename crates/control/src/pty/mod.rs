//! `--pty`: separate raw terminals for standard output and standard error. An output that is a terminal already stays: a shell
//! with job control needs its controlling terminal as standard error.
//!
//! They are not controlling terminals: the program stays in its session and process group, so Ctrl-C, Ctrl-Z and
//! the terminal's other signals reach it as before.

mod relay;
mod size;
mod writers;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

pub use relay::TerminalOutput;
use weir_sys::file_system::is_terminal;

/// Both ends of a pseudoterminal.
struct PtyPair {
    /// The end that weir reads.
    master: OwnedFd,
    /// The end that the program inherits.
    slave: OwnedFd,
}

/// Opens a pseudoterminal in raw mode, which changes no byte and echoes none.
fn open_pair() -> io::Result<PtyPair> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let mut settings = tcgetattr(&slave)?;
    settings.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &settings)?;
    Ok(PtyPair { master, slave })
}

/// Terminals that replace descriptors 1 and 2 while this process starts a command.
pub struct Terminals {
    /// For descriptors 1 and 2; None where weir has a terminal already. This process closes its copies of the program's ends
    /// after the start.
    pairs: [Option<PtyPair>; 2],
    /// Duplicates of weir's descriptors 1 and 2.
    own: [File; 2],
}

impl Terminals {
    /// Opens the terminals. Descriptors 1 and 2 do not change yet. Fails if a descriptor or a pseudoterminal cannot be opened.
    pub fn open() -> io::Result<Terminals> {
        let duplicate =
            |fd: BorrowedFd<'_>| Ok::<_, io::Error>(File::from(rustix::io::fcntl_dupfd_cloexec(fd, 3)?));
        let own = [duplicate(io::stdout().as_fd())?, duplicate(io::stderr().as_fd())?];
        let missing = |file: &File| if is_terminal(file) { Ok(None) } else { open_pair().map(Some) };
        let pairs = [missing(&own[0])?, missing(&own[1])?];
        for pair in pairs.iter().flatten() {
            size::copy_window_size(&own, pair.master.as_fd());
        }
        Ok(Terminals { pairs, own })
    }

    /// Runs `start` with the terminals as descriptors 1 and 2, which its child inherits, and restores the
    /// descriptors. Returns the result of `start` and the terminals' output. After an error descriptors 1 and 2 may be terminals.
    pub fn replace_during<T>(self, start: impl FnOnce() -> T) -> io::Result<(T, TerminalOutput)> {
        if let Some(out) = &self.pairs[0] {
            rustix::stdio::dup2_stdout(&out.slave)?;
        }
        if let Some(error) = &self.pairs[1] {
            rustix::stdio::dup2_stderr(&error.slave)?;
        }
        let started = start();
        rustix::stdio::dup2_stdout(&self.own[0])?;
        rustix::stdio::dup2_stderr(&self.own[1])?;
        let Terminals { pairs, own } = self;
        let masters = pairs.map(|pair| pair.map(|pair| pair.master));
        Ok((started, TerminalOutput::new(masters, own)))
    }
}
