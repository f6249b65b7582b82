//! Writes to the open file behind a tracee's descriptor without blocking.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use weir_sys::ptrace::same_file;

/// PIPE_BUF (pipe(7)): a pipe that poll(2) reports as writable takes a write of this size whole.
const PIPE_BUF: usize = 4096;

/// A duplicate of a tracee's descriptor: the same open file with the same offset.
#[derive(Debug)]
pub(crate) struct TraceeFile {
    file: OwnedFd,
    /// A regular file or block device, which a write never waits for.
    never_blocks: bool,
    /// A file that is open for reading and writing.
    read_write: bool,
}

impl TraceeFile {
    /// Duplicates a descriptor of a traced thread, which may be in its exit stop.
    pub fn open(tid: u32, fd: i32) -> io::Result<TraceeFile> {
        let file = duplicate(tid, fd).or_else(|error| own_duplicate(tid, fd).ok_or(error))?;
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        let never_blocks = matches!(kind, FileType::RegularFile | FileType::BlockDevice);
        let read_write = never_blocks && fcntl_getfl(&file)?.contains(OFlags::RDWR);
        Ok(TraceeFile { file, never_blocks, read_write })
    }

    /// Tells whether bytes may be written ahead of the program. In a file that is open for reading and writing the
    /// program could notice it: the offset depends on what the program has flushed.
    pub fn allows_writing_ahead(&self) -> bool {
        !self.read_write
    }

    /// Tells whether a write would not block. An error counts: the write then returns it at once.
    pub fn is_writable(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.never_blocks || poll(&mut polled, Some(&no_wait)).is_ok_and(|ready| ready > 0)
    }

    /// Writes as many bytes as fit now. Returns their number and the error of the first failed write; a full pipe is
    /// no error.
    pub fn write_available(&self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut done = 0;
        while done < bytes.len() && self.is_writable() {
            let most = if self.never_blocks { usize::MAX } else { PIPE_BUF };
            let piece = &bytes[done..bytes.len().min(done.saturating_add(most))];
            match rustix::io::write(&self.file, piece) {
                Ok(0) => break,
                Ok(written) => done += written,
                // Another writer has filled the pipe, and the supervisor's timer has interrupted the write.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => break,
                Err(errno) => return (done, Err(errno.into())),
            }
        }
        (done, Ok(()))
    }
}

/// Duplicates a descriptor of another process by pidfd_getfd(2).
pub(crate) fn duplicate(tid: u32, fd: i32) -> io::Result<OwnedFd> {
    // Since Linux 6.9 a pidfd can refer to a thread, which outlives its leader.
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    let pidfd = pidfd_open(tid, 0).or_else(|_| pidfd_open(tid, PIDFD_THREAD))?;
    // SAFETY: all arguments are numbers; the result is a new close-on-exec descriptor.
    owned_fd(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
}

fn pidfd_open(tid: u32, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: all arguments are numbers; the result is a new close-on-exec descriptor.
    owned_fd(unsafe { libc::syscall(libc::SYS_pidfd_open, tid as libc::pid_t, flags) })
}

fn owned_fd(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor for the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

/// Duplicates the one of weir's standard descriptors that has the same open file.
fn own_duplicate(tid: u32, fd: i32) -> Option<OwnedFd> {
    let own = (0..3).find(|own| same_file((tid, fd), (std::process::id(), *own)))?;
    // SAFETY: F_DUPFD_CLOEXEC creates a descriptor and changes no other.
    owned_fd(unsafe { libc::fcntl(own, libc::F_DUPFD_CLOEXEC, 3) }.into()).ok()
}
