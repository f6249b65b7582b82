//! The kind of file that a descriptor refers to, and how many bytes one write to it may have.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, fstatfs, tell};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SocketType, sockopt::socket_type};
use weir_sys::file_system::{fuse_options, fuse_user};
use weir_sys::writer_identity::file_size_limit;

/// PIPE_BUF (pipe(7)): a pipe that poll(2) reports as writable takes a write of this size whole.
const PIPE_BUF: usize = 4096;
/// The size of one write to a terminal: the kernel's WAKEUP_CHARS (n_tty.c), by which poll(2) reports room.
const TERMINAL_BYTES: usize = 256;
/// FUSE_SUPER_MAGIC of linux/magic.h.
const FUSE: u32 = 0x6573_5546;
/// File systems of the kernel's own state, by linux/magic.h: a write is a command, and the kernel judges its writer.
const KERNEL_STATE: [(u32, &str); 13] = [
    (0x9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0xcafe_4a11, "bpf"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0xde5e_81e4, "efivarfs"),
    (0x4249_4e4d, "binfmt_misc"),
];

/// The kind of an open file, as far as a write depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sink {
    kind: FileType,
    /// Each write to the socket, or to the pipe in packet mode (O_DIRECT, pipe(7)), is one message.
    keeps_messages: bool,
    /// The largest size to which the process may extend the file (RLIMIT_FSIZE); None if there is no limit.
    size_limit: Option<u64>,
    appends: bool,
    pub read_write: bool,
    records: Option<RecordRule>,
}

/// How bytes are divided that consist of records.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordRule {
    /// The last byte of each record.
    pub end: u8,
    /// A record that is too long for one write is divided.
    pub divides_long: bool,
}

/// Returns why weir does not even duplicate a descriptor of process `pid`: another user serves its file. A close of the
/// duplicate would wait for the server.
pub(super) fn refusal_by_mount(pid: u32, fd: i32) -> Option<String> {
    let (options, is_known_user) = fuse_options(pid, fd)?;
    if !is_known_user {
        return Some("an unknown user serves its file system (FUSE), and may never answer".into());
    }
    let own = rustix::process::geteuid().as_raw().to_string();
    let mut users = options.split(',').filter_map(|option| option.strip_prefix("user_id="));
    let user = users.find(|user| *user != "0" && *user != own)?;
    Some(format!("user {user} serves its file system (FUSE), and may never answer"))
}

/// Returns why weir never writes to an open file of process `pid`; None if it may.
pub(super) fn refusal(pid: u32, file: BorrowedFd) -> Option<String> {
    let magic = fstatfs(file).ok()?.f_type as u32;
    if let Some((_, name)) = KERNEL_STATE.iter().find(|(number, _)| *number == magic) {
        return Some(format!(
            "it is a file of {name}, where a write is a command: the program itself must make it"
        ));
    }
    if magic != FUSE {
        return None;
    }
    let own = rustix::process::geteuid().as_raw();
    match fuse_user(pid, fstat(file).ok()?.st_dev) {
        Some(user) if user == 0 || user == own => None,
        Some(user) => Some(format!("user {user} serves its file system (FUSE), and may never answer")),
        None => Some("an unknown user serves its file system (FUSE), and may never answer".into()),
    }
}

/// Returns the smaller one of the limits of a process and of weir; None if there is none.
fn size_limit(pid: u32) -> Option<u64> {
    let limits = [file_size_limit(pid), file_size_limit(0)].map(|limit| limit.map_or(0, |limit| limit.0));
    limits.into_iter().min().filter(|limit| *limit != libc::RLIM_INFINITY)
}

impl Sink {
    /// Examines an open file of process `pid`.
    pub fn of(pid: u32, file: BorrowedFd) -> rustix::io::Result<Sink> {
        let kind = FileType::from_raw_mode(fstat(file)?.st_mode);
        let flags = fcntl_getfl(file)?;
        let keeps_messages = match kind {
            FileType::Socket => !socket_type(file).is_ok_and(|kind| kind == SocketType::STREAM),
            FileType::Fifo => flags.contains(OFlags::DIRECT),
            _ => false,
        };
        let size_limit = if kind == FileType::RegularFile { size_limit(pid) } else { None };
        Ok(Sink {
            kind,
            keeps_messages,
            size_limit,
            appends: flags.contains(OFlags::APPEND),
            read_write: matches!(kind, FileType::RegularFile | FileType::BlockDevice)
                && flags.contains(OFlags::RDWR),
            records: None,
        })
    }

    /// As [`Sink::of`] for an own file, with a limit.
    #[cfg(test)]
    pub fn with_limit(file: BorrowedFd, limit: u64) -> rustix::io::Result<Sink> {
        Ok(Sink { size_limit: Some(limit), ..Sink::of(std::process::id(), file)? })
    }

    /// Returns the sink with a rule for the bytes.
    pub fn with_records(self, records: Option<RecordRule>) -> Sink {
        Sink { records, ..self }
    }

    /// Returns whether the first of the bytes are a record that one write to a pipe may divide, and that stays therefore.
    pub fn begins_with_long_record(&self, bytes: &[u8]) -> bool {
        self.kind == FileType::Fifo && !bytes.is_empty() && self.whole_records(bytes, PIPE_BUF) == 0
    }

    pub fn kind(&self) -> FileType {
        self.kind
    }

    /// Returns whether each write is one message, so that a part of it would be another message.
    pub fn keeps_messages(&self) -> bool {
        self.keeps_messages
    }

    /// Returns whether a write never waits for a reader.
    fn never_waits(&self) -> bool {
        matches!(self.kind, FileType::RegularFile | FileType::BlockDevice)
    }

    /// Returns whether one write will probably take this many bytes, for a stream that cannot keep a part.
    pub fn takes_whole(&self, file: BorrowedFd, bytes: usize) -> bool {
        if self.kind != FileType::Fifo {
            return true;
        }
        let empty = || rustix::io::ioctl_fionread(file).is_ok_and(|waiting| waiting == 0);
        let size = || rustix::pipe::fcntl_getpipe_size(file).unwrap_or(0);
        bytes <= PIPE_BUF || empty() && size() >= bytes
    }

    /// Returns whether a write may wait for a reader, and a reader is there.
    pub fn may_take_more(&self, file: BorrowedFd) -> bool {
        !self.never_waits() && self.room(file, 1).is_ok()
    }

    /// Returns how many of the next `bytes` one write may have without waiting; 0 if the file takes none now. Fails with
    /// EPIPE if a pipe has no reader, and with EFBIG at the process's limit: a write would raise a signal.
    /// Async-signal-safe.
    pub fn next_length(&self, file: BorrowedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
        Ok(self.whole_records(bytes, self.room(file, bytes.len())?))
    }

    /// Returns how many of the bytes, at most `most`, are whole records. Only a write to a pipe is one piece for all its readers and
    /// writers, and only up to [`PIPE_BUF`].
    fn whole_records(&self, bytes: &[u8], most: usize) -> usize {
        let Some(rule) = self.records.filter(|_| self.kind == FileType::Fifo && most < bytes.len()) else {
            return most.min(bytes.len());
        };
        match bytes[..most].iter().rposition(|byte| *byte == rule.end) {
            Some(at) => at + 1,
            None if rule.divides_long => most,
            None => 0,
        }
    }

    /// As [`Sink::next_length`], for bytes that can be divided anywhere.
    fn room(&self, file: BorrowedFd, bytes: usize) -> rustix::io::Result<usize> {
        if self.never_waits() {
            return self.size_left(file).map(|left| left.map_or(bytes, |left| bytes.min(left)));
        }
        let mut wanted = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::OUT)];
        // A pending signal ends poll(2) with EINTR also if it does not wait.
        let ready = retry_on_intr(|| poll(&mut wanted, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))?;
        if self.kind == FileType::Fifo && wanted[0].revents().contains(PollFlags::ERR) {
            return Err(Errno::PIPE);
        }
        let most = match self.kind {
            FileType::Socket if self.keeps_messages => usize::MAX,
            FileType::Socket | FileType::Fifo => PIPE_BUF,
            _ => TERMINAL_BYTES,
        };
        Ok(if ready > 0 { bytes.min(most) } else { 0 })
    }

    /// Returns how many bytes the limit leaves; None without a limit. Fails with EFBIG at the limit.
    fn size_left(&self, file: BorrowedFd) -> rustix::io::Result<Option<usize>> {
        let Some(limit) = self.size_limit else { return Ok(None) };
        let offset = if self.appends { fstat(file)?.st_size as u64 } else { tell(file)? };
        match usize::try_from(limit.saturating_sub(offset)).unwrap_or(usize::MAX) {
            0 => Err(Errno::FBIG),
            left => Ok(Some(left)),
        }
    }
}
