//! Writes to the open file behind another process's descriptor without waiting for its reader.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// PIPE_BUF (pipe(7)): a pipe that poll(2) reports as writable takes a write of this size whole.
const PIPE_BUF: usize = 4096;
/// The size of one write to a terminal: the kernel's WAKEUP_CHARS (n_tty.c), by which poll(2) reports room.
const TERMINAL_BYTES: usize = 256;

/// A duplicate of another process's descriptor: the same open file with the same offset.
pub(super) struct TargetFile {
    file: OwnedFd,
    kind: FileType,
}

/// The result of a write.
#[derive(Debug)]
pub(super) struct WriteProgress {
    pub written: usize,
    /// None if the file takes no more bytes now.
    pub error: Option<io::Error>,
}

impl TargetFile {
    /// Duplicates a descriptor by pidfd_getfd(2).
    pub fn open(pid: u32, fd: i32) -> io::Result<TargetFile> {
        let process = Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        let file = pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        Ok(TargetFile { file, kind })
    }

    /// Tells whether one write will probably take this many bytes, for a stream that cannot keep a part.
    pub fn takes_whole(&self, bytes: usize) -> bool {
        if self.kind != FileType::Fifo {
            return true;
        }
        let empty = || rustix::io::ioctl_fionread(&self.file).is_ok_and(|waiting| waiting == 0);
        let size = || rustix::pipe::fcntl_getpipe_size(&self.file).unwrap_or(0);
        bytes <= PIPE_BUF || empty() && size() >= bytes
    }

    /// Writes as many bytes as the file takes now.
    pub fn write_available(&self, bytes: &[u8]) -> WriteProgress {
        let mut progress = WriteProgress { written: 0, error: None };
        while progress.written < bytes.len() {
            match self.write_piece(&bytes[progress.written..]) {
                Ok(0) => break,
                Ok(written) => progress.written += written,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    progress.error = Some(error.into());
                    break;
                }
            }
        }
        progress
    }

    /// Tells whether each write to the socket is one message.
    fn keeps_messages(&self) -> bool {
        use rustix::net::{SocketType, sockopt::socket_type};
        !socket_type(&self.file).is_ok_and(|kind| kind == SocketType::STREAM)
    }

    /// Writes a first part of the bytes. Returns 0 if the file takes none now.
    fn write_piece(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let most = match self.kind {
            FileType::RegularFile => return rustix::io::write(&self.file, bytes),
            FileType::Socket if self.keeps_messages() => usize::MAX,
            FileType::Socket | FileType::Fifo => PIPE_BUF,
            _ => TERMINAL_BYTES,
        };
        if !is_writable(self.file.as_fd())? {
            return Ok(0);
        }
        let part = &bytes[..bytes.len().min(most)];
        match self.kind {
            FileType::Socket => {
                use rustix::net::{SendFlags, send};
                send(&self.file, part, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
            FileType::Fifo => write_without_waiting(self.file.as_fd(), part),
            _ => rustix::io::write(&self.file, part),
        }
    }
}

/// Tells whether a write would not block. An error or a missing reader counts: the write returns it.
fn is_writable(file: BorrowedFd) -> rustix::io::Result<bool> {
    let mut wanted = [PollFd::from_borrowed_fd(file, PollFlags::OUT)];
    Ok(poll(&mut wanted, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// Writes to a pipe with RWF_NOWAIT, because another writer may have filled it since the poll. A kernel without it for
/// pipes gets a plain write.
fn write_without_waiting(file: BorrowedFd, part: &[u8]) -> rustix::io::Result<usize> {
    let vector = [io::IoSlice::new(part)];
    match rustix::io::pwritev2(file, &vector, u64::MAX, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::SPIPE | Errno::INVAL) => rustix::io::write(file, part),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_write_to_a_full_pipe_returns_at_once() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let file = TargetFile { file: writer.into(), kind: FileType::Fifo };
        assert!(file.takes_whole(60_000));
        let progress = file.write_available(&[7; 100_000]);
        assert!(
            progress.error.is_none() && progress.written >= 4096 && progress.written < 100_000,
            "{progress:?}"
        );
        assert!(!file.takes_whole(60_000) && file.write_available(b"more").written == 0);
        let mut got = vec![0; progress.written];
        reader.read_exact(&mut got).unwrap();
        assert!(got.iter().all(|byte| *byte == 7));
        drop(reader);
        assert_eq!(file.write_available(b"x").error.unwrap().raw_os_error(), Some(libc::EPIPE));
    }

    #[test]
    fn the_duplicate_shares_the_offset() {
        let mut temporary = tempfile::tempfile().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&temporary);
        let file = TargetFile::open(std::process::id(), fd).unwrap();
        assert_eq!(file.write_available(b"first ").written, 6);
        std::io::Write::write_all(&mut temporary, b"second").unwrap();
        std::io::Seek::rewind(&mut temporary).unwrap();
        let mut text = String::new();
        temporary.read_to_string(&mut text).unwrap();
        assert_eq!(text, "first second");
        assert!(TargetFile::open(std::process::id(), 9999).is_err());
    }
}
