//! The options of a stream, and the functions that open one.
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

/// The point at which a stream writes its pending bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamMode {
    /// `None` for descriptor 2, `Line` for a terminal, otherwise `Full`.
    #[default]
    Auto,
    /// At the end of each call (unbuffered).
    None,
    /// At each separator, by default a newline.
    Line,
    /// When the buffer is full.
    Full,
    /// When the buffer is full, whole records only.
    Record,
}

/// The failures that accepted bytes survive. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamDurability {
    /// Nothing: a killed process loses its buffer.
    #[default]
    Process,
    /// SIGKILL, abort, `_exit`: the buffer is a shared mapping that [`crate::recover`] reads.
    Kill,
    /// The end of the process: the kernel has the bytes.
    Kernel,
    /// A power loss: fdatasync(2).
    Data,
    /// A power loss, with all metadata and the directory entry: fsync(2) of both.
    Whole,
}

/// Options for opening a stream. [`Options::new`] has the defaults of the C library.
#[derive(Clone, Debug, Default)]
pub struct Options {
    mode: StreamMode,
    durability: StreamDurability,
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
    /// Returns the defaults: fully buffered, except for terminals and descriptor 2.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the buffering mode.
    #[must_use]
    pub fn mode(mut self, mode: StreamMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the durability of each completed record when the call that wrote it returns.
    #[must_use]
    pub fn durability(mut self, durability: StreamDurability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the longest time that a completed byte stays in the process. Rounded down to milliseconds, at
    /// least one; zero means no limit.
    #[must_use]
    pub fn stale(mut self, delay: Duration) -> Self {
        let ms = u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
        self.stale_ms = if delay.is_zero() { 0 } else { ms.max(1) };
        self
    }

    /// Sets the buffer size: 1 byte to 1 GiB; 0 selects a size by the type of the file.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Sets the maximal length of a line or record that is read. A longer one is an error (EMSGSIZE). 0 means
    /// no limit.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes;
        self
    }

    /// Sets the byte that ends a line or record. The default is a newline.
    #[must_use]
    pub fn separator(mut self, byte: u8) -> Self {
        self.separator = Some(byte);
        self
    }

    /// Locks the file (F_OFD_SETLKW) during each write.
    #[must_use]
    pub fn lock_file(mut self, yes: bool) -> Self {
        self.lock_file = yes;
        self
    }

    /// Sets the path of the spill file of a [`StreamDurability::Kill`] stream.
    ///
    /// # Errors
    /// InvalidInput if the path contains a NUL.
    pub fn spill(mut self, path: &Path) -> io::Result<Self> {
        self.spill = Some(c_path(path)?);
        Ok(self)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that cannot be combined.
    pub fn open(&self, path: &Path) -> io::Result<Stream> {
        self.open_with(path, OFlags::RDONLY)
    }

    /// Creates a file for writing, or truncates it.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that cannot be combined.
    pub fn create(&self, path: &Path) -> io::Result<Stream> {
        self.open_with(path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
    }

    /// Opens a file for appending, and creates it if it does not exist.
    ///
    /// # Errors
    /// As open(2); EINVAL for options that cannot be combined.
    pub fn append(&self, path: &Path) -> io::Result<Stream> {
        self.open_with(path, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
    }

    /// Opens a file with flags of open(2).
    ///
    /// # Errors
    /// As open(2); EINVAL for options that cannot be combined.
    pub fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<Stream> {
        let path = c_path(path)?;
        let flags = i32::try_from(flags.bits()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let raw = self.raw();
        // SAFETY: path and options are valid during the call, which copies them; *s is set or NULL.
        Stream::open(|s| unsafe { ffi::weir_open(s, path.as_ptr(), flags, &raw) })
    }

    /// Opens a stream over a descriptor, which the stream closes.
    ///
    /// # Errors
    /// As fstat(2) and fcntl(2); EINVAL for options that the type of the file does not support. The
    /// descriptor is closed in this case too.
    pub fn from_fd(&self, fd: OwnedFd) -> io::Result<Stream> {
        let raw = self.raw();
        // SAFETY: `fd` is open and owned; ownership passes to the stream only on success.
        let stream =
            Stream::open(|s| unsafe { ffi::weir_fdopen(s, std::os::fd::AsRawFd::as_raw_fd(&fd), &raw) })?;
        let _owned_by_stream = fd.into_raw_fd();
        Ok(stream)
    }

    /// Opens a stream over standard output. Closing it does not close the descriptor.
    ///
    /// # Errors
    /// As fstat(2), for instance EBADF if the descriptor is closed.
    pub fn stdout(&self) -> io::Result<Stream> {
        let raw = Self { keep_open: true, ..self.clone() }.raw();
        // SAFETY: the library checks whether descriptor 1 is open.
        Stream::open(|s| unsafe { ffi::weir_fdopen(s, 1, &raw) })
    }

    /// Opens a stream over standard input. Closing it does not close the descriptor.
    ///
    /// # Errors
    /// As fstat(2), for instance EBADF if the descriptor is closed.
    pub fn stdin(&self) -> io::Result<Stream> {
        let raw = Self { keep_open: true, ..self.clone() }.raw();
        // SAFETY: the library checks whether descriptor 0 is open.
        Stream::open(|s| unsafe { ffi::weir_fdopen(s, 0, &raw) })
    }

    /// Opens a temporary file in the directory of `path`. [`Stream::replace`] renames it to `path`.
    ///
    /// # Errors
    /// As open(2) in the directory of `path`.
    pub fn open_replace(&self, path: &Path) -> io::Result<Stream> {
        let path = c_path(path)?;
        let raw = self.raw();
        // SAFETY: path and options are valid during the call, which copies them; *s is set or NULL.
        Stream::open(|s| unsafe { ffi::weir_open_replace(s, path.as_ptr(), &raw) })
    }

    /// Converts the options. Sets WEIR_THREADS for every stream: exit(3) flushes it from the thread that
    /// calls it.
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

/// The result of [`recover`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes that were complete and pending when the owner died.
    pub bytes: u64,
    /// How many of them the owner may already have written.
    pub repeated: u64,
    /// Process ID of the dead owner.
    pub pid: i32,
    /// Whether each byte was written exactly once; otherwise at least once.
    pub exact: bool,
}

/// Writes the pending bytes in a dead owner's spill file to the file that the owner was writing, and removes
/// the spill file.
///
/// # Errors
/// EBUSY if the owner is alive; EBADMSG if the file is not a spill file; otherwise as open(2) and write(2).
/// The spill file then stays, for another call.
pub fn recover(spill: &Path) -> io::Result<Recovered> {
    let spill = c_path(spill)?;
    let mut found = ffi::RawRecovered { bytes: 0, repeated: 0, pid: 0, exact: 0, path: [0; 4096] };
    // SAFETY: the path is valid during the call, and `found` has the C structure's layout (test in ffi.rs).
    check(i64::from(unsafe { ffi::weir_recover(spill.as_ptr(), -1, &mut found) }))?;
    Ok(Recovered { bytes: found.bytes, repeated: found.repeated, pid: found.pid, exact: found.exact != 0 })
}
