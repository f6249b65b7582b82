//! A stream: reading, writing, syncing and closing.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::{fmt, slice};

use crate::ffi::{self, RawStream};
use crate::options::StreamDurability;

/// Converts a result of the C library: a count, or `-errno`.
pub(crate) fn check(result: i64) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| {
        io::Error::from_raw_os_error(i32::try_from(-result).expect("an errno is a small number"))
    })
}

/// A buffered stream over a descriptor.
///
/// Writes go to the buffer, which is written as the mode says. The first write error sticks: later writes
/// return it until [`Stream::clear`], and bytes that were accepted but not written stay in the buffer.
/// Dropping a stream closes it and ignores errors; call [`Stream::close`] to get them.
///
/// Threads may share a stream: `&Stream` implements `Write`, and each call is atomic for other threads.
pub struct Stream {
    raw: NonNull<RawStream>,
}

// SAFETY: every stream is opened with WEIR_THREADS (options.rs), so the library locks it in every call. It
// has no state of the thread that opened it.
unsafe impl Send for Stream {}
// SAFETY: as for Send. Functions that return pointers into the buffer take &mut self.
unsafe impl Sync for Stream {}

/// The error of [`Stream::close`].
#[derive(Debug)]
pub struct CloseError {
    /// The first error of the stream, or the error of closing it.
    pub error: io::Error,
    /// Accepted bytes that could not be written.
    pub lost_bytes: u64,
    /// The stream, still open and with nothing lost, if the write would block (EAGAIN).
    pub stream: Option<Stream>,
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost_bytes {
            0 => self.error.fmt(f),
            bytes => write!(f, "{} ({bytes} bytes not written)", self.error),
        }
    }
}

impl std::error::Error for CloseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<CloseError> for io::Error {
    fn from(error: CloseError) -> Self {
        error.error
    }
}

/// Statistics of a stream; see `struct weir_stats` in weir.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Accepted, not yet written.
    pub pending_bytes: u64,
    /// Read ahead, not yet consumed.
    pub unread_bytes: u64,
    /// Written to the kernel.
    pub written_bytes: u64,
    /// Read from the kernel.
    pub read_bytes: u64,
    /// Number of write(2) calls.
    pub writes: u64,
    /// Number of read(2) calls.
    pub reads: u64,
    /// Number of fdatasync(2) and fsync(2) calls.
    pub syncs: u64,
    /// Calls of [`Stream::sync`] that another thread's fdatasync(2) covered.
    pub shared_syncs: u64,
    /// Writes by the timer of [`crate::Options::stale`].
    pub stale_drains: u64,
    /// Size of the write buffer.
    pub buffer_bytes: u64,
}

impl Stream {
    /// Returns the stream that `call` opens.
    pub(crate) fn open(call: impl FnOnce(*mut *mut RawStream) -> i32) -> io::Result<Self> {
        let mut raw = ptr::null_mut();
        check(i64::from(call(&mut raw)))?;
        Ok(Self { raw: NonNull::new(raw).expect("set when the result is 0") })
    }

    fn raw(&self) -> *mut RawStream {
        self.raw.as_ptr()
    }

    /// Appends one record and its separator, completely or not at all.
    ///
    /// # Errors
    /// The write error that sticks, or an error of writing pending bytes to make room.
    pub fn put_record(&self, record: &[u8]) -> io::Result<()> {
        // SAFETY: the library reads the slice only during the call.
        let result = unsafe { ffi::weir_putrec(self.raw(), record.as_ptr().cast(), record.len()) };
        check(result as i64).map(drop)
    }

    /// Lets `fill` write to the free part of the buffer, which has room for at least `bytes` bytes, and appends the first
    /// bytes of it, as many as `fill` returns. This saves the copy of [`Write::write`]. The bytes before that have any
    /// value.
    ///
    /// # Errors
    /// The write error that sticks, or an error of making room (`fill` is not called then); EINVAL if `fill` returns more
    /// than the room.
    pub fn append_with(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> io::Result<usize> {
        let mut room: *mut c_char = ptr::null_mut();
        // SAFETY: `room` is set when the result is positive.
        let length = check(unsafe { ffi::weir_reserve(self.raw(), &mut room, bytes) } as i64)?;
        // SAFETY: the buffer is an anonymous mapping (Options has no memory of the caller's), so all its bytes are
        // initialised. Until the next call, which needs the stream that is borrowed here, nothing else reads or writes the
        // reserved bytes: a timer writes only bytes that were appended.
        let appended = fill(unsafe { slice::from_raw_parts_mut(room.cast(), length as usize) });
        // SAFETY: the stream is open.
        check(i64::from(unsafe { ffi::weir_commit(self.raw(), appended) }))?;
        Ok(appended)
    }

    /// Returns the next line or record with its separator, in place in the buffer; `None` at the end.
    ///
    /// # Errors
    /// As read(2); EMSGSIZE if it is longer than [`crate::Options::max_record_bytes`].
    pub fn next_record(&mut self) -> io::Result<Option<&[u8]>> {
        let mut record: *mut c_char = ptr::null_mut();
        // SAFETY: `record` is set when the result is positive.
        let length = check(unsafe { ffi::weir_getrec_slow(self.raw(), &mut record) } as i64)?;
        // SAFETY: `length` bytes are valid until the next call that reads, which needs &mut self.
        Ok((length > 0).then(|| unsafe { slice::from_raw_parts(record.cast(), length as usize) }))
    }

    /// Raises the durability of everything accepted so far to `level`. Threads that sync at the same time
    /// share one fdatasync(2).
    ///
    /// # Errors
    /// As write(2) and fdatasync(2). A device error is permanent: every later call returns it.
    pub fn sync(&self, level: StreamDurability) -> io::Result<()> {
        // SAFETY: the stream is open.
        check(i64::from(unsafe { ffi::weir_sync(self.raw(), level as u32) })).map(drop)
    }

    /// Clears the error that sticks and the end-of-file state. The next flush tries again to write pending
    /// bytes.
    pub fn clear(&self) {
        // SAFETY: the stream is open.
        unsafe { ffi::weir_clear(self.raw()) }
    }

    /// Writes the pending bytes to `file` in place of the stream's own file, which cannot take them. The stream goes on
    /// with `file`.
    ///
    /// # Errors
    /// The descriptor cannot be replaced, or the write failed.
    pub fn write_pending_to(&mut self, file: impl AsFd) -> io::Result<()> {
        // SAFETY: the descriptor is the stream's own, and ManuallyDrop leaves it open.
        let mut own = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(ffi::weir_fd(self.raw())) });
        rustix::io::dup3(file, &mut own, rustix::io::DupFlags::CLOEXEC)?;
        self.clear();
        (&*self).flush()
    }

    /// Returns whether a read has met the end of the input.
    #[must_use]
    pub fn at_end(&self) -> bool {
        // SAFETY: the stream is open.
        unsafe { ffi::weir_eof(self.raw()) == 1 }
    }

    /// Returns the statistics since the opening.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut raw = ffi::RawStats::default();
        // SAFETY: `raw` has the C structure's layout (test in ffi.rs).
        unsafe { ffi::weir_get_stats(self.raw(), &mut raw) };
        Stats {
            pending_bytes: raw.pending_bytes,
            unread_bytes: raw.unread_bytes,
            written_bytes: raw.written_bytes,
            read_bytes: raw.read_bytes,
            writes: raw.writes,
            reads: raw.reads,
            syncs: raw.syncs,
            shared_syncs: raw.shared_syncs,
            stale_drains: raw.stale_drains,
            buffer_bytes: raw.buffer_bytes,
        }
    }

    /// Flushes and closes the stream.
    ///
    /// # Errors
    /// The first error of the stream, and the number of bytes lost.
    pub fn close(self) -> Result<(), CloseError> {
        let stream = ManuallyDrop::new(self);
        let mut lost_bytes = 0;
        // SAFETY: the stream is open. It is used again only after EAGAIN, which leaves it open.
        let result = unsafe { ffi::weir_close_lost(stream.raw(), &mut lost_bytes) };
        let Err(error) = check(i64::from(result)) else { return Ok(()) };
        let open = error.kind() == io::ErrorKind::WouldBlock;
        let stream = open.then(|| ManuallyDrop::into_inner(stream));
        Err(CloseError { error, lost_bytes: if open { 0 } else { lost_bytes }, stream })
    }

    /// Replaces the path given to [`crate::Options::open_replace`]: flushes, syncs the file, renames it,
    /// syncs the directory.
    ///
    /// # Errors
    /// The error of the first step that failed. Before the rename the path is unchanged.
    pub fn replace(self) -> io::Result<()> {
        let stream = ManuallyDrop::new(self);
        // SAFETY: the stream is open. It is used again only after EAGAIN, which leaves it open.
        let result = check(i64::from(unsafe { ffi::weir_replace(stream.raw()) }));
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::WouldBlock
        {
            drop(ManuallyDrop::into_inner(stream)); // closes it; the path is unchanged
        }
        result.map(drop)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and this is its last use. EAGAIN leaves it open: it then leaks, so that
        // no pending byte is lost, and exit flushes it.
        unsafe { ffi::weir_close_lost(self.raw(), ptr::null_mut()) };
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("stats", &self.stats()).finish()
    }
}

impl AsFd for Stream {
    /// Returns the descriptor. Pending bytes are not in the file yet: flush first.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the stream, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(ffi::weir_fd(self.raw())) }
    }
}

impl Write for &Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        // SAFETY: the library reads the slice only during the call.
        let accepted = unsafe { ffi::weir_write_slow(self.raw(), from.as_ptr().cast(), from.len()) };
        check(accepted as i64).map(|accepted| accepted as usize)
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open.
        check(i64::from(unsafe { ffi::weir_flush(self.raw()) })).map(drop)
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        (&*self).write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the library writes at most the length of the slice, only during the call.
        let got = unsafe { ffi::weir_read_some(self.raw(), to.as_mut_ptr().cast(), to.len()) };
        check(got as i64).map(|got| got as usize)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let mut from: *mut c_char = ptr::null_mut();
        // SAFETY: the call always sets `from`.
        let got = check(unsafe { ffi::weir_peek(self.raw(), &mut from, 1) } as i64)?;
        if got == 0 {
            return Ok(&[]);
        }
        // SAFETY: `got` bytes are valid until the next call that reads, which needs &mut self.
        Ok(unsafe { slice::from_raw_parts(from.cast(), got as usize) })
    }

    fn consume(&mut self, amount: usize) {
        // SAFETY: the stream is open; the call discards at most the bytes that exist.
        unsafe { ffi::weir_skip(self.raw(), amount) };
    }
}

impl Seek for Stream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(offset) => (i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?, 0),
            SeekFrom::Current(offset) => (offset, 1),
            SeekFrom::End(offset) => (offset, 2),
        };
        // SAFETY: the stream is open.
        check(unsafe { ffi::weir_seek(self.raw(), offset, whence) })
    }
}
