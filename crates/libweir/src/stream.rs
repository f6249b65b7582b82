//! The stream itself.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::{fmt, slice};

use crate::ffi::{self, RawStream};
use crate::options::Durability;

/// A count that is well, or the error.
pub(crate) fn check(result: i64) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| {
        io::Error::from_raw_os_error(i32::try_from(-result).expect("an errno is a small number"))
    })
}

/// A buffered stream over a descriptor.
///
/// Writing puts bytes into the buffer; they leave as the mode says. The first error of writing sticks:
/// later writes return it until [`Stream::clear`], and what was accepted but not written stays in the
/// buffer. Dropping a stream closes it and ignores the error: call [`Stream::close`].
///
/// Threads may share it: `&Stream` is `Write`, each call whole.
pub struct Stream {
    raw: NonNull<RawStream>,
}

// SAFETY: every stream is opened with WEIR_THREADS (options.rs), so the library locks it in every call; it
// keeps nothing of the thread that opened it.
unsafe impl Send for Stream {}
// SAFETY: the same. Calls that give out pointers into the buffer take &mut self.
unsafe impl Sync for Stream {}

/// Why [`Stream::close`] failed.
#[derive(Debug)]
pub struct CloseError {
    /// The first error that the stream ever had, or that of closing.
    pub error: io::Error,
    /// Accepted bytes that could not be written.
    pub lost_bytes: u64,
    /// The stream, still open and with nothing lost, if the error is only that writing would block.
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

/// What a stream has done; see `struct weir_stats` in weir.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Accepted, not yet written.
    pub pending_bytes: u64,
    /// Read ahead, not yet taken.
    pub unread_bytes: u64,
    /// Given to the kernel.
    pub written_bytes: u64,
    /// Taken from the kernel.
    pub read_bytes: u64,
    /// Calls of write(2).
    pub writes: u64,
    /// Calls of read(2).
    pub reads: u64,
    /// Calls of fdatasync(2) and fsync(2).
    pub syncs: u64,
    /// [`Stream::sync`]s that another thread's fdatasync served.
    pub shared_syncs: u64,
    /// Times that something was written out because its delay was over.
    pub stale_drains: u64,
    /// Of the write buffer.
    pub buffer_bytes: u64,
}

impl Stream {
    pub(crate) fn made(make: impl FnOnce(*mut *mut RawStream) -> i32) -> io::Result<Self> {
        let mut raw = ptr::null_mut();
        check(i64::from(make(&mut raw)))?;
        Ok(Self { raw: NonNull::new(raw).expect("set when the result is 0") })
    }

    fn raw(&self) -> *mut RawStream {
        self.raw.as_ptr()
    }

    /// Adds one record with its separator, whole or not at all.
    ///
    /// # Errors
    /// The one that sticks, or that of writing out to make room.
    pub fn put_record(&self, record: &[u8]) -> io::Result<()> {
        // SAFETY: the slice is read during the call only.
        let result = unsafe { ffi::weir_putrec(self.raw(), record.as_ptr().cast(), record.len()) };
        check(result as i64).map(drop)
    }

    /// The next line or record with its separator, in the buffer itself; `None` at the end.
    ///
    /// # Errors
    /// As read(2); EMSGSIZE for one that is longer than allowed.
    pub fn next_record(&mut self) -> io::Result<Option<&[u8]>> {
        let mut record: *mut c_char = ptr::null_mut();
        // SAFETY: `record` is set when the result is positive.
        let length = check(unsafe { ffi::weir_getrec_slow(self.raw(), &mut record) } as i64)?;
        // SAFETY: so many bytes lie there until the next call that reads, which needs &mut self.
        Ok((length > 0).then(|| unsafe { slice::from_raw_parts(record.cast(), length as usize) }))
    }

    /// Raises everything accepted so far to `level`. Threads that do so at the same time share one
    /// fdatasync(2).
    ///
    /// # Errors
    /// As write(2) and fdatasync(2). An error of the device is remembered for ever.
    pub fn sync(&self, level: Durability) -> io::Result<()> {
        // SAFETY: a call with a live stream.
        check(i64::from(unsafe { ffi::weir_sync(self.raw(), level as u32) })).map(drop)
    }

    /// Forgets the error that sticks, and the end of the file; what could not be written is tried again by
    /// the next flush.
    pub fn clear(&self) {
        // SAFETY: a call with a live stream.
        unsafe { ffi::weir_clear(self.raw()) }
    }

    /// Whether the last read met the end.
    #[must_use]
    pub fn at_end(&self) -> bool {
        // SAFETY: a call with a live stream.
        unsafe { ffi::weir_eof(self.raw()) == 1 }
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut raw = ffi::RawStats::default();
        // SAFETY: a structure of the size that C knows, see the test of ffi.rs.
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

    /// Writes out and closes.
    ///
    /// # Errors
    /// The first error that the stream ever had, and how many bytes it cost.
    pub fn close(self) -> Result<(), CloseError> {
        let stream = ManuallyDrop::new(self);
        let mut lost_bytes = 0;
        // SAFETY: the stream is live, and not used again unless the library says that it still is.
        let result = unsafe { ffi::weir_close_lost(stream.raw(), &mut lost_bytes) };
        let Err(error) = check(i64::from(result)) else { return Ok(()) };
        let open = error.kind() == io::ErrorKind::WouldBlock;
        let stream = open.then(|| ManuallyDrop::into_inner(stream));
        Err(CloseError { error, lost_bytes: if open { 0 } else { lost_bytes }, stream })
    }

    /// Puts what was written to a stream of [`crate::Options::open_replace`] in the place of its path:
    /// write out, sync, rename, sync the directory.
    ///
    /// # Errors
    /// Of the first step that failed; if before the rename, the path is as it was.
    pub fn replace(self) -> io::Result<()> {
        let stream = ManuallyDrop::new(self);
        // SAFETY: the stream is live, and not used again unless the library says that it still is.
        let result = check(i64::from(unsafe { ffi::weir_replace(stream.raw()) }));
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::WouldBlock
        {
            drop(ManuallyDrop::into_inner(stream)); // closes it; the path is as it was
        }
        result.map(drop)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is live and this is its last use; EAGAIN leaves it open, and then it leaks
        // rather than lose what waits: exit flushes it.
        unsafe { ffi::weir_close_lost(self.raw(), ptr::null_mut()) };
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("stats", &self.stats()).finish()
    }
}

impl AsFd for Stream {
    /// The descriptor. What waits in the buffer is not in the file yet: flush first.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream's descriptor is open as long as the stream, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(ffi::weir_fd(self.raw())) }
    }
}

impl Write for &Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        // SAFETY: the slice is read during the call only.
        let taken = unsafe { ffi::weir_write_slow(self.raw(), from.as_ptr().cast(), from.len()) };
        check(taken as i64).map(|taken| taken as usize)
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: a call with a live stream.
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
        // SAFETY: the slice is written to during the call only, at most its length.
        let got = unsafe { ffi::weir_read_some(self.raw(), to.as_mut_ptr().cast(), to.len()) };
        check(got as i64).map(|got| got as usize)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let mut from: *mut c_char = ptr::null_mut();
        // SAFETY: `from` is set in any case.
        let got = check(unsafe { ffi::weir_peek(self.raw(), &mut from, 1) } as i64)?;
        if got == 0 {
            return Ok(&[]);
        }
        // SAFETY: so many bytes lie there until the next call that reads, which needs &mut self.
        Ok(unsafe { slice::from_raw_parts(from.cast(), got as usize) })
    }

    fn consume(&mut self, amount: usize) {
        // SAFETY: a call with a live stream; it goes past what is there at most.
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
        // SAFETY: a call with a live stream.
        check(unsafe { ffi::weir_seek(self.raw(), offset, whence) })
    }
}
