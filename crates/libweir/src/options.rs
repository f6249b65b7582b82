//! How to open a stream.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::ffi;
use crate::stream::{Stream, check};

/// When bytes leave the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// None for descriptor 2, line for a terminal, otherwise full.
    #[default]
    Auto,
    /// With each call.
    None,
    /// With each separator.
    Line,
    /// When the buffer is full.
    Full,
    /// When the buffer is full, in whole records only.
    Record,
}

/// What accepted bytes survive: a ladder, each level includes those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Nothing: a killed process takes what is in its buffer along.
    #[default]
    Process,
    /// SIGKILL, abort, `_exit`: the buffer is a shared mapping that [`crate::recover`] reads.
    Kill,
    /// The end of the process: the bytes are the kernel's.
    Kernel,
    /// A power cut (fdatasync(2)).
    Data,
    /// A power cut, with all metadata and the directory entry (fsync(2) of both).
    Whole,
}

/// How to open a stream; starts with the defaults of the C library.
#[derive(Clone, Debug, Default)]
pub struct Options {
    mode: Mode,
    durability: Durability,
    stale_ms: u32,
    buffer_bytes: usize,
    max_record_bytes: usize,
    separator: Option<u8>,
    keep_open: bool,
    lock_file: bool,
    spill: Option<CString>,
}

const THREADS: u32 = 0x1;
const LOCK_FILE: u32 = 0x2;
const KEEP_OPEN: u32 = 0x40;
const SEPARATOR_NUL: i32 = 256;

impl Options {
    /// The defaults: buffered fully, except for terminals and descriptor 2.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When bytes leave the buffer.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// What every completed record survives before the call that wrote it returns.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// No completed byte waits longer than this in the process. Whole milliseconds, at least one; zero:
    /// as long as it takes.
    #[must_use]
    pub fn stale(mut self, delay: Duration) -> Self {
        let ms = u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
        self.stale_ms = if delay.is_zero() { 0 } else { ms.max(1) };
        self
    }

    /// 1 byte to 1 GiB; 0 for a size that fits the file.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// A longer line or record to be read is an error (EMSGSIZE); 0: no limit.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes;
        self
    }

    /// What ends a line or record; a newline unless set.
    #[must_use]
    pub fn separator(mut self, byte: u8) -> Self {
        self.separator = Some(byte);
        self
    }

    /// Hold a lock on the file (F_OFD_SETLKW) while writing out.
    #[must_use]
    pub fn lock_file(mut self, yes: bool) -> Self {
        self.lock_file = yes;
        self
    }

    /// The file that holds the buffer of a [`Durability::Kill`] stream.
    ///
    /// # Errors
    /// The path has a NUL in it.
    pub fn spill(mut self, path: &Path) -> io::Result<Self> {
        self.spill = Some(c_path(path)?);
        Ok(self)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that exclude each other.
    pub fn open(&self, path: &Path) -> io::Result<Stream> {
        self.open_with(path, OFlags::RDONLY)
    }

    /// Opens a file for writing, made anew.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that exclude each other.
    pub fn create(&self, path: &Path) -> io::Result<Stream> {
        self.open_with(path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
    }

    /// Opens a file for writing at its end, made if it is not there.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that exclude each other.
    pub fn append(&self, path: &Path) -> io::Result<Stream> {
        self.open_with(path, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
    }

    /// Opens a file as open(2) does with these flags.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that exclude each other.
    pub fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<Stream> {
        let path = c_path(path)?;
        let flags = i32::try_from(flags.bits()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let raw = self.raw();
        // SAFETY: path and options live through the call, which keeps no pointer to them; *s is set or NULL.
        Stream::made(|s| unsafe { ffi::weir_open(s, path.as_ptr(), flags, &raw) })
    }

    /// A stream over an open descriptor, which it closes.
    ///
    /// # Errors
    /// As fstat(2) and fcntl(2); EINVAL for options that do not fit what the descriptor is. The descriptor
    /// is closed then as well.
    pub fn from_fd(&self, fd: OwnedFd) -> io::Result<Stream> {
        let raw = self.raw();
        // SAFETY: the descriptor is ours, and given up only when the stream has it.
        let stream =
            Stream::made(|s| unsafe { ffi::weir_fdopen(s, std::os::fd::AsRawFd::as_raw_fd(&fd), &raw) })?;
        let _now_the_streams = fd.into_raw_fd();
        Ok(stream)
    }

    /// A stream over standard output; the descriptor stays open after it.
    ///
    /// # Errors
    /// As fstat(2), such as EBADF when it is closed.
    pub fn stdout(&self) -> io::Result<Stream> {
        let raw = Self { keep_open: true, ..self.clone() }.raw();
        // SAFETY: 1 is a number; the library checks what it is.
        Stream::made(|s| unsafe { ffi::weir_fdopen(s, 1, &raw) })
    }

    /// A stream over standard input; the descriptor stays open after it.
    ///
    /// # Errors
    /// As fstat(2), such as EBADF when it is closed.
    pub fn stdin(&self) -> io::Result<Stream> {
        let raw = Self { keep_open: true, ..self.clone() }.raw();
        // SAFETY: 0 is a number; the library checks what it is.
        Stream::made(|s| unsafe { ffi::weir_fdopen(s, 0, &raw) })
    }

    /// A temporary file beside `path` that [`Stream::replace`] puts in its place.
    ///
    /// # Errors
    /// As open(2) in the directory of `path`.
    pub fn open_replace(&self, path: &Path) -> io::Result<Stream> {
        let path = c_path(path)?;
        let raw = self.raw();
        // SAFETY: path and options live through the call, which copies them; *s is set or NULL.
        Stream::made(|s| unsafe { ffi::weir_open_replace(s, path.as_ptr(), &raw) })
    }

    /// Every stream is opened to be shared by threads: exit(3) flushes it from whichever thread calls it.
    fn raw(&self) -> ffi::RawOptions {
        ffi::RawOptions {
            mode: self.mode as u32,
            durability: self.durability as u32,
            on_fork: 0,
            access: 0,
            flags: THREADS
                | if self.lock_file { LOCK_FILE } else { 0 }
                | if self.keep_open { KEEP_OPEN } else { 0 },
            separator: match self.separator {
                None => 0,
                Some(0) => SEPARATOR_NUL,
                Some(byte) => i32::from(byte),
            },
            stale_ms: self.stale_ms,
            reserved_0: 0,
            buffer_bytes: self.buffer_bytes,
            buffer: ptr::null_mut(),
            max_record_bytes: self.max_record_bytes,
            spill: self.spill.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            reserved: [0; 8],
        }
    }
}

pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// What [`recover`] found in a spill file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes that were complete and not yet written.
    pub bytes: u64,
    /// Of them, those that were perhaps written already.
    pub repeated: u64,
    /// The dead owner.
    pub pid: i32,
    /// Every byte is there exactly once; otherwise at least once.
    pub exact: bool,
}

/// Writes what the dead owner of a spill file left to the file that it was writing, and removes the spill
/// file.
///
/// # Errors
/// EBUSY: the owner lives. EBADMSG: it is no spill file. Otherwise as open(2) and write(2): the spill file
/// stays, to be tried again.
pub fn recover(spill: &Path) -> io::Result<Recovered> {
    let spill = c_path(spill)?;
    let mut found = ffi::RawRecovered { bytes: 0, repeated: 0, pid: 0, exact: 0, path: [0; 4096] };
    // SAFETY: the path lives through the call, and `found` is a structure of the size that C knows.
    check(i64::from(unsafe { ffi::weir_recover(spill.as_ptr(), -1, &mut found) }))?;
    Ok(Recovered { bytes: found.bytes, repeated: found.repeated, pid: found.pid, exact: found.exact != 0 })
}
