//! A process beside weir that continues its work when weir ends or executes another program.
//!
//! It is no child of weir, so a wait for any child does not see it. weir and the companion share a socket. When weir closes its
//! side, the companion finishes its work; when the companion's side is closed, all work is done.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use crate::descriptors::close_all_but;
use crate::signals::{OF_GROUP, set_of};

/// The byte that a companion can send when its work has begun.
pub const BEGUN: u8 = 1;

/// The treatment of [`OF_GROUP`] by a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupSignals {
    Ignored,
    Blocked,
}

/// A companion process. Dropping it asks for the end of the work, and does not wait.
#[derive(Debug)]
pub struct Companion(UnixStream);

impl Companion {
    /// Forks a companion that calls `work` with its side of the socket, and ends then. It keeps the descriptors `kept` and
    /// its side of the socket; its standard descriptors are /dev/null. It ignores the signals of users and terminals,
    /// because they also reach the process group of weir. The calling process must have one thread. Fails if no socket or
    /// process can be created.
    pub fn start(kept: &[RawFd], work: impl FnOnce(UnixStream)) -> io::Result<Companion> {
        let (own, other) = UnixStream::pair()?;
        // SAFETY: this process has one thread, so no lock is held in the child, which never returns from this block.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: as above. The parent of the companion ends at once.
                match unsafe { libc::fork() } {
                    0 => run(kept, GroupSignals::Ignored, other, work),
                    // SAFETY: runs no exit handlers of weir.
                    pid => unsafe { libc::_exit((pid < 0).into()) },
                }
            }
            pid => {
                let mut status = 0;
                // SAFETY: the child is not reaped, and the status goes to this frame.
                while unsafe { libc::waitpid(pid, &mut status, 0) } < 0
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {}
                if status == 0 { Ok(Companion(own)) } else { Err(io::Error::from_raw_os_error(libc::EAGAIN)) }
            }
        }
    }

    /// Waits until the companion sends [`BEGUN`], and returns true; false if it ends before that.
    pub fn has_begun(&self) -> bool {
        let mut byte = [0];
        (&self.0).read_exact(&mut byte).is_ok() && byte == [BEGUN]
    }

    /// Tells the companion that weir needs no more work, waits until the present work is done, and returns the sentences for the user
    /// that the companion has sent, one a line.
    pub fn finish(self) -> String {
        finish(self.0)
    }

    /// Returns weir's side of the socket, for a program that weir executes: [`finish`].
    pub fn socket(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// As [`Companion::finish`], with weir's side of the socket.
pub(crate) fn finish(mut socket: UnixStream) -> String {
    let mut sentences = Vec::new();
    let _gone = socket.shutdown(Shutdown::Write);
    let _ended = socket.read_to_end(&mut sentences);
    String::from_utf8_lossy(&sentences).into_owned()
}

/// Forks a child that calls `work` with its side of a socket, as a companion without other descriptors. [`OF_GROUP`] are blocked
/// in it from its start, so that each stays pending. Returns the other side, and the PID. The calling process must have one thread.
pub(crate) fn start_child(work: impl FnOnce(UnixStream)) -> io::Result<(UnixStream, libc::pid_t)> {
    let (own, other) = UnixStream::pair()?;
    let set = set_of(&OF_GROUP);
    // SAFETY: zero bytes are a valid set, which a call fills; the others read sets of this frame. This process has one thread, so no
    // lock is held in the child, which never returns from this block.
    let pid = unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
        let pid = libc::fork();
        if pid == 0 {
            run(&[], GroupSignals::Blocked, other, work);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        pid
    };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok((own, pid)) }
}

fn run(kept: &[RawFd], signals: GroupSignals, socket: UnixStream, work: impl FnOnce(UnixStream)) -> ! {
    let mut fds: Vec<RawFd> = [0, 1, 2, socket.as_raw_fd()].into_iter().chain(kept.iter().copied()).collect();
    fds.sort_unstable();
    // SAFETY: all calls take numbers or a static string; SIG_IGN calls no code. No object of this process uses another
    // descriptor from here on.
    unsafe {
        // To ignore a signal would discard a pending one.
        let ignored = if signals == GroupSignals::Ignored { &OF_GROUP[..] } else { &[] };
        for signal in ignored.iter().chain(&[libc::SIGTTOU, libc::SIGPIPE]) {
            libc::signal(*signal, libc::SIG_IGN);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        close_all_but(&fds);
    }
    // A panic must not unwind into the parent's frames.
    let _ended = catch_unwind(AssertUnwindSafe(|| work(socket)));
    // SAFETY: ends the process without the exit handlers of weir.
    unsafe { libc::_exit(0) }
}
