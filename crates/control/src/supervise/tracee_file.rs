//! Writing to the very open file that a process has behind a descriptor, without ever hanging on it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use weir_sys::ptrace::same_file;

/// What a pipe takes whole once it says that there is room.
const PIPE_BUF: usize = 4096;

/// An open file of a process, shared with it.
#[derive(Debug)]
pub(crate) struct TraceeFile {
    file: OwnedFd,
    /// Writing to it never waits for a reader.
    plain: bool,
    /// A file that is read by the same descriptor.
    both: bool,
}

impl TraceeFile {
    /// Of the descriptor `fd` of a thread that is traced, which may be about to end.
    pub fn of(tid: u32, fd: i32) -> io::Result<TraceeFile> {
        let file = taken(tid, fd).or_else(|error| own(tid, fd).ok_or(error))?;
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        let plain = matches!(kind, FileType::RegularFile | FileType::BlockDevice);
        let both = plain && fcntl_getfl(&file)?.contains(OFlags::RDWR);
        Ok(TraceeFile { file, plain, both })
    }

    /// Whether it makes no difference to the program if some bytes are in the file earlier. Where it reads and
    /// writes by one descriptor, it does: its position is then a matter of what was flushed.
    pub fn takes_ahead(&self) -> bool {
        !self.both
    }

    /// Whether it would take something now; an error on it counts, since then it says so at once.
    pub fn ready(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.plain || poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Writes as much as it takes now. The error is that of the first write that failed; that it is full is none.
    pub fn put(&self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut done = 0;
        while done < bytes.len() && self.ready() {
            let most = if self.plain { usize::MAX } else { PIPE_BUF };
            let piece = &bytes[done..bytes.len().min(done.saturating_add(most))];
            match rustix::io::write(&self.file, piece) {
                Ok(0) => break,
                Ok(written) => done += written,
                // Somebody else has filled it, and the timer of this thread has ended the wait.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => break,
                Err(errno) => return (done, Err(errno.into())),
            }
        }
        (done, Ok(()))
    }
}

/// A duplicate, by pidfd_getfd(2).
pub(crate) fn taken(tid: u32, fd: i32) -> io::Result<OwnedFd> {
    // Since 6.9 a pidfd may be of a thread, which lives on when its leader has ended.
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    let pidfd = pidfd(tid, 0).or_else(|_| pidfd(tid, PIDFD_THREAD))?;
    // SAFETY: numbers only; what it returns is a new descriptor, closed on exec.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
}

fn pidfd(tid: u32, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: as above.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid as libc::pid_t, flags) })
}

fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}

/// The same open file among weir's own standard descriptors.
fn own(tid: u32, fd: i32) -> Option<OwnedFd> {
    let mine = (0..3).find(|mine| same_file((tid, fd), (std::process::id(), *mine)))?;
    // SAFETY: makes a new descriptor.
    owned(unsafe { libc::fcntl(mine, libc::F_DUPFD_CLOEXEC, 3) }.into()).ok()
}
