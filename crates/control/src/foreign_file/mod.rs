//! The open file behind another process's descriptor. Every byte that weir writes for another process goes through here.
//!
//! The kernel judges some writes by their writer: a set-user-ID bit stays if the writer is root, a socket delivers the
//! writer's user ID, a security module allows or denies. So weir writes itself only for a process of its own identity.
//! For others a stopped thread of the process makes the write; if none can, a child with exactly that identity.

mod duplicate;
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "a thread writes on x86-64 only"))]
pub(crate) mod late_writes;
mod sink;
#[cfg(target_arch = "x86_64")]
mod thread_write;

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use weir_sys::errno_text;
use weir_sys::foreign_descriptors::{FORBIDDEN_ADVICE, forbidden};
use weir_sys::ptrace::PtraceStop;
use weir_sys::seccomp_copy::SeccompCopy;
use weir_sys::write_as::{ChildCredentials, WriteProgress};
use weir_sys::writer_identity::{WriterIdentity, has_seccomp_filter};
use weir_walkers::FlushPosition;

use self::sink::{RecordRule, Sink};

/// A thread whose descriptors weir writes to, and its identity, which is read once. The thread must not run while this
/// exists, because it could take another identity.
#[derive(Debug)]
pub(crate) struct TargetThread {
    pub tid: u32,
    /// None if the thread has ended.
    identity: OnceCell<Option<WriterIdentity>>,
}

impl TargetThread {
    pub fn new(tid: u32) -> TargetThread {
        TargetThread { tid, identity: OnceCell::new() }
    }

    fn identity(&self) -> Option<&WriterIdentity> {
        self.identity.get_or_init(|| WriterIdentity::of(self.tid)).as_ref()
    }
}

/// A duplicate of another process's descriptor: the same open file with the same offset, or another one that writes to the same place.
#[derive(Debug)]
pub(crate) struct ForeignFile {
    file: OwnedFd,
    sink: Sink,
    writer: Writer,
}

/// The process that makes the write.
#[derive(Debug)]
enum Writer {
    /// Weir itself, for a process of its own identity.
    Weir,
    /// The first of these stopped threads of the process that can, by its own descriptor; else a child of weir.
    Other { tids: Vec<u32>, fd: i32, child: io::Result<ChildCredentials> },
    /// A child of weir under the seccomp filters of the process, which could kill a thread for the calls of weir.
    Filtered(ChildCredentials),
}

/// The reason why weir does not write to a descriptor at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForeignFileError {
    /// The descriptor cannot be duplicated.
    #[error("pidfd_getfd: {}{}", errno_text(.0), advice())]
    Open(#[from] io::Error),
    /// The write could do what the process itself may not do. Holds the reason.
    #[error("{0}")]
    Refused(String),
}

/// The result of a write.
#[derive(Debug, Default)]
pub(crate) struct WriteOutcome {
    pub written: usize,
    /// None if the file takes no more bytes now.
    pub error: Option<io::Error>,
    /// The writes that the kernel counts for the process.
    pub own_calls: u64,
    /// The stop in which a thread of the process is after its own write, if it wrote.
    pub stop: Option<PtraceStop>,
}

impl ForeignFile {
    /// Duplicates a descriptor of a thread, which may be in its exit stop. `stopped` are tracees of the calling thread
    /// that are stopped as [`weir_sys::ptrace::own_calls`] needs it; the best first.
    pub fn open(thread: &TargetThread, fd: i32, stopped: &[u32]) -> Result<ForeignFile, ForeignFileError> {
        let tid = thread.tid;
        if let Some(why) = sink::refusal_by_mount(tid, fd) {
            return Err(ForeignFileError::Refused(why));
        }
        let file =
            duplicate::open(tid, fd, || own_identity().is_some_and(|own| thread.identity() == Some(own)))?;
        if let Some(why) = sink::refusal(tid, file.as_fd()) {
            return Err(ForeignFileError::Refused(why));
        }
        let sink = Sink::of(tid, file.as_fd()).map_err(io::Error::from)?;
        Ok(ForeignFile { sink, writer: writer(thread, fd, stopped)?, file })
    }

    /// Returns the file for bytes that are records, if `record_end` is the last byte of each: a write to a pipe has whole ones. A record
    /// that is too long for one write stays, unless `divides_long`.
    #[must_use]
    pub fn of_records(self, record_end: Option<u8>, divides_long: bool) -> ForeignFile {
        let rule = record_end.map(|end| RecordRule { end, divides_long });
        ForeignFile { sink: self.sink.with_records(rule), ..self }
    }

    /// Returns whether the first of the bytes are a record that stays, see [`ForeignFile::of_records`].
    pub fn begins_with_long_record(&self, bytes: &[u8]) -> bool {
        self.sink.begins_with_long_record(bytes)
    }

    /// Returns whether bytes may be written ahead of the program. In a file that is open for reading and writing the
    /// program could notice it: the offset depends on what the program has flushed. With `only_writes` the stream never
    /// reads. Then the end of such a file allows it too, because a read finds nothing there before and after. Go opens files
    /// so (os.Create).
    pub fn allows_writing_ahead(&self, only_writes: bool) -> bool {
        !self.sink.read_write || only_writes && self.is_at_end()
    }

    /// Returns whether each write is one message: the program's bytes in two writes would be two messages.
    pub fn keeps_messages(&self) -> bool {
        self.sink.keeps_messages()
    }

    /// Moves the offset of a regular file as the flush of a stream would. Fails if the offset is not where the stream has left
    /// it: other bytes would be overwritten.
    pub fn move_to(&self, position: &FlushPosition) -> Result<(), ForeignFileError> {
        let appends = rustix::fs::fcntl_getfl(&self.file).is_ok_and(|flags| flags.contains(OFlags::APPEND));
        if self.sink.kind() != FileType::RegularFile || appends {
            return Ok(());
        }
        let offset = rustix::fs::tell(&self.file).map_err(io::Error::from)?;
        match position.at {
            Some(at) if at == offset => Ok(()),
            Some(at) if position.before == Some(offset) => {
                rustix::fs::seek(&self.file, SeekFrom::Start(at)).map_err(io::Error::from)?;
                Ok(())
            }
            _ => Err(ForeignFileError::Refused("it is unknown at which offset they belong".into())),
        }
    }

    /// Returns whether the position of a regular file is its end.
    fn is_at_end(&self) -> bool {
        let size = rustix::fs::fstat(&self.file).ok().map(|about| about.st_size as u64);
        size.is_some() && size == rustix::fs::tell(&self.file).ok()
    }

    /// Returns whether one write will probably take this many bytes, for a stream that cannot keep a part.
    pub fn takes_whole(&self, bytes: usize) -> bool {
        self.sink.takes_whole(self.file.as_fd(), bytes)
    }

    /// Returns whether a file that has just taken no more bytes can take some later without an error.
    pub fn may_take_more(&self) -> bool {
        self.sink.may_take_more(self.file.as_fd())
    }

    /// Writes as many bytes as the file takes now.
    pub fn write_available(&self, bytes: &[u8]) -> WriteOutcome {
        // If the file takes no bytes now, no thread is stopped and no child is started.
        match self.sink.next_length(self.file.as_fd(), bytes) {
            Ok(0) => return WriteOutcome::default(),
            Err(errno) => return WriteOutcome { error: Some(errno.into()), ..WriteOutcome::default() },
            Ok(_) => {}
        }
        let (file, sink) = (self.file.as_fd(), &self.sink);
        match &self.writer {
            Writer::Weir => {
                let mut written = 0;
                let result = write_pieces(file, sink, bytes, |piece| written += piece);
                WriteOutcome { written, error: result.err().map(io::Error::from), ..WriteOutcome::default() }
            }
            Writer::Other { tids, fd, child } => write_by_thread(tids, *fd, file, sink, bytes)
                .unwrap_or_else(|| write_by_child(child, file, sink, bytes)),
            Writer::Filtered(child) => write_under_filters(child, file, sink, bytes),
        }
    }
}

#[cfg(target_arch = "x86_64")]
use thread_write::write as write_by_thread;

/// Other architectures have no access to a thread's system calls.
#[cfg(not(target_arch = "x86_64"))]
fn write_by_thread(_: &[u32], _: i32, _: BorrowedFd, _: &Sink, _: &[u8]) -> Option<WriteOutcome> {
    None
}

fn write_by_child(
    child: &io::Result<ChildCredentials>,
    file: BorrowedFd,
    sink: &Sink,
    bytes: &[u8],
) -> WriteOutcome {
    let failed = |error| WriteOutcome { error: Some(error), ..WriteOutcome::default() };
    let child = match child {
        Ok(child) => child,
        Err(error) => return failed(io::Error::other(no_identity_text(error))),
    };
    let (written, result) = child.run(file, |file, progress| {
        let note = |piece| {
            progress.written.fetch_add(piece, Relaxed);
        };
        note_error(progress, write_pieces(file, sink, bytes, note));
    });
    WriteOutcome { written, ..result.err().map_or_else(WriteOutcome::default, failed) }
}

/// Writes in pieces, each by one plain write(2) of a child: a filter may refuse all other calls.
fn write_under_filters(
    child: &ChildCredentials,
    file: BorrowedFd,
    sink: &Sink,
    bytes: &[u8],
) -> WriteOutcome {
    let mut outcome = WriteOutcome::default();
    while outcome.written < bytes.len() {
        let rest = &bytes[outcome.written..];
        let piece = match sink.next_length(file, rest) {
            Ok(0) => break,
            Ok(length) => &rest[..length],
            Err(errno) => return WriteOutcome { error: Some(errno.into()), ..outcome },
        };
        let (written, result) = child.run(file, |file, progress| {
            let note = |written| progress.written.store(written, Relaxed);
            note_error(progress, rustix::io::write(file, piece).map(note));
        });
        outcome.written += written;
        match result {
            Err(error) => return WriteOutcome { error: Some(error), ..outcome },
            Ok(()) if written == 0 => break,
            Ok(()) => {}
        }
    }
    outcome
}

/// Returns what to do if pidfd_getfd(2) is forbidden to weir; begins with its own separator.
fn advice() -> String {
    forbidden().map_or_else(String::new, |_| format!("; {FORBIDDEN_ADVICE}"))
}

fn no_identity_text(error: &io::Error) -> String {
    format!("weir cannot take the identity of the process: {}", errno_text(error))
}

/// Notes the errno of a failed write. Async-signal-safe.
fn note_error(progress: &WriteProgress, result: rustix::io::Result<()>) {
    if let Err(errno) = result {
        progress.errno.store(errno.raw_os_error(), Relaxed);
    }
}

/// Returns weir's identity, which never changes.
fn own_identity() -> Option<&'static WriterIdentity> {
    static OWN: OnceLock<Option<WriterIdentity>> = OnceLock::new();
    OWN.get_or_init(WriterIdentity::own).as_ref()
}

/// Chooses the writer for a thread. Fails if each possible writer has rights that the process does not have.
fn writer(thread: &TargetThread, fd: i32, stopped: &[u32]) -> Result<Writer, ForeignFileError> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    let own = own_identity().ok_or_else(gone)?;
    let identity = thread.identity().ok_or_else(gone)?;
    if own == identity {
        return Ok(Writer::Weir);
    }
    if has_seccomp_filter(thread.tid) {
        let child = SeccompCopy::of(thread.tid).and_then(|filters| {
            Ok(ChildCredentials::of(thread.tid, identity.clone(), own)?.with_filters(filters, fd))
        });
        return child.map(Writer::Filtered).map_err(|error| {
            ForeignFileError::Refused(format!(
                "the process has another identity than weir, and a seccomp filter that weir cannot take: {}",
                errno_text(&error)
            ))
        });
    }
    match ChildCredentials::of(thread.tid, identity.clone(), own) {
        Err(error) if stopped.is_empty() => Err(ForeignFileError::Refused(no_identity_text(&error))),
        child => Ok(Writer::Other { tids: stopped.to_vec(), fd, child }),
    }
}

/// Writes in pieces that do not wait for a reader, and calls `note` after each. Returns at the first piece that the file
/// does not take. Async-signal-safe if `note` is.
fn write_pieces(
    file: BorrowedFd,
    sink: &Sink,
    bytes: &[u8],
    mut note: impl FnMut(usize),
) -> rustix::io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = sink.next_length(file, rest)?;
        let written = match write_piece(file, sink.kind(), &rest[..length]) {
            // Another writer has filled the pipe, or a timer has interrupted the write.
            Err(Errno::INTR | Errno::AGAIN) | Ok(0) => break,
            Ok(written) => written,
            Err(errno) => return Err(errno),
        };
        note(written);
        rest = &rest[written..];
    }
    Ok(())
}

fn write_piece(file: BorrowedFd, kind: FileType, piece: &[u8]) -> rustix::io::Result<usize> {
    match kind {
        _ if piece.is_empty() => Ok(0),
        FileType::Socket => {
            use rustix::net::{SendFlags, send};
            send(file, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
        }
        FileType::Fifo => write_without_waiting(file, piece),
        _ => rustix::io::write(file, piece),
    }
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
mod tests;
