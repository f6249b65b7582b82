//! The open file behind another process's descriptor, written to without ever waiting for who reads it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// The most that a write to a pipe puts there whole or not at all; poll(2) says when there is room for it.
const PIPE_BUF: usize = 4096;
/// When poll(2) says that a terminal takes bytes, it takes these.
const TERMINAL_BYTES: usize = 256;

/// A duplicate of a descriptor of another process: the same open file, with the same position.
pub(super) struct TargetFile {
    file: OwnedFd,
    kind: FileType,
}

/// How far writing came.
#[derive(Debug)]
pub(super) struct WriteProgress {
    pub written: usize,
    /// Why not all; None and not all: it takes no more now.
    pub error: Option<io::Error>,
}

impl TargetFile {
    pub fn of(pid: u32, fd: i32) -> io::Result<TargetFile> {
        let process = Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        let file = pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        Ok(TargetFile { file, kind })
    }

    /// Whether so many bytes can go at once, as far as can be told before; for a stream that cannot keep a part.
    pub fn takes_all(&self, bytes: usize) -> bool {
        if self.kind != FileType::Fifo {
            return true;
        }
        let empty = || rustix::io::ioctl_fionread(&self.file).is_ok_and(|waiting| waiting == 0);
        let size = || rustix::pipe::fcntl_getpipe_size(&self.file).unwrap_or(0);
        bytes <= PIPE_BUF || empty() && size() >= bytes
    }

    /// Writes as much as it takes now.
    pub fn put(&self, bytes: &[u8]) -> WriteProgress {
        let mut put = WriteProgress { written: 0, error: None };
        while put.written < bytes.len() {
            match self.piece(&bytes[put.written..]) {
                Ok(0) => break,
                Ok(written) => put.written += written,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    put.error = Some(error.into());
                    break;
                }
            }
        }
        put
    }

    /// What goes into it at once stays together: datagrams.
    fn is_of_messages(&self) -> bool {
        use rustix::net::{SocketType, sockopt::socket_type};
        !socket_type(&self.file).is_ok_and(|kind| kind == SocketType::STREAM)
    }

    /// A part; 0: it takes nothing now.
    fn piece(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let most = match self.kind {
            FileType::RegularFile => return rustix::io::write(&self.file, bytes),
            FileType::Socket if self.is_of_messages() => usize::MAX,
            FileType::Socket | FileType::Fifo => PIPE_BUF,
            _ => TERMINAL_BYTES,
        };
        if !is_ready(self.file.as_fd())? {
            return Ok(0);
        }
        let part = &bytes[..bytes.len().min(most)];
        match self.kind {
            FileType::Socket => {
                use rustix::net::{SendFlags, send};
                send(&self.file, part, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
            FileType::Fifo => write_at_once(self.file.as_fd(), part),
            _ => rustix::io::write(&self.file, part),
        }
    }
}

/// An error or a reader that has gone makes it ready too: writing then says which.
fn is_ready(file: BorrowedFd) -> rustix::io::Result<bool> {
    let mut wanted = [PollFd::from_borrowed_fd(file, PollFlags::OUT)];
    Ok(poll(&mut wanted, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// Another writer may have taken the room since it was looked at: RWF_NOWAIT does not wait for it. A kernel that
/// has not got that for pipes is asked to write what there was room for.
fn write_at_once(file: BorrowedFd, part: &[u8]) -> rustix::io::Result<usize> {
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
    fn a_full_pipe_is_not_waited_for() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let sink = TargetFile { file: writer.into(), kind: FileType::Fifo };
        assert!(sink.takes_all(60_000));
        let put = sink.put(&[7; 100_000]);
        assert!(put.error.is_none() && put.written >= 4096 && put.written < 100_000, "{put:?}");
        assert!(!sink.takes_all(60_000) && sink.put(b"more").written == 0);
        let mut got = vec![0; put.written];
        reader.read_exact(&mut got).unwrap();
        assert!(got.iter().all(|byte| *byte == 7));
        drop(reader);
        assert_eq!(sink.put(b"x").error.unwrap().raw_os_error(), Some(libc::EPIPE));
    }

    #[test]
    fn it_is_the_same_open_file() {
        let mut file = tempfile::tempfile().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let sink = TargetFile::of(std::process::id(), fd).unwrap();
        assert_eq!(sink.put(b"first ").written, 6);
        std::io::Write::write_all(&mut file, b"second").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "first second");
        assert!(TargetFile::of(std::process::id(), 9999).is_err());
    }
}
