//! fread(3) and fwrite(3), as a textbook's program copies: two streams of the C library, each with a buffer of its own.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};

use super::{RangeEnd, RangeResult, Transfer, TransferError};

/// The bytes of one call of fread(3): smaller than the usual buffers, so that the streams' buffers decide.
const RECORD_BYTES: usize = 1024;

/// An open stream of the C library.
struct Stream(*mut libc::FILE);

impl Stream {
    /// Opens a stream with its own descriptor, at `at`.
    fn open(file: BorrowedFd<'_>, mode: &std::ffi::CStr, at: u64, buffer: Option<usize>) -> io::Result<Self> {
        use std::os::fd::IntoRawFd as _;
        seek(file, SeekFrom::Start(at))?;
        let own = file.try_clone_to_owned()?.into_raw_fd();
        // SAFETY: the descriptor is open and the mode a C string; the stream takes the descriptor over.
        let stream = unsafe { libc::fdopen(own, mode.as_ptr()) };
        if stream.is_null() {
            let error = io::Error::last_os_error();
            // SAFETY: no stream has the descriptor.
            unsafe { libc::close(own) };
            return Err(error);
        }
        if let Some(bytes) = buffer {
            // SAFETY: the stream is open and unused; it allocates the buffer itself.
            unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOFBF, bytes) };
        }
        Ok(Self(stream))
    }

    /// Writes pending bytes, by fflush(3).
    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and not used again.
        unsafe { libc::fclose(self.0) };
    }
}

/// Copies a range through two streams.
pub(super) fn copy_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    let buffer = transfer.chunk_is_chosen.then_some(transfer.chunk);
    let source = Stream::open(transfer.source, c"r", *at, buffer)
        .map_err(|error| TransferError::Source("fdopen", error))?;
    let mut target = Stream::open(transfer.target, c"r+", *at, buffer)
        .or_else(|_| Stream::open(transfer.target, c"w", *at, buffer))
        .map_err(|error| TransferError::Target("fdopen", error))?;
    let mut record = [0_u8; RECORD_BYTES];
    let mut unnoted = 0;

    while *at < end {
        let wanted = usize::try_from(end - *at).map_or(RECORD_BYTES, |left| left.min(RECORD_BYTES));
        transfer.tally.call("fread");
        // SAFETY: the record has room for `wanted` bytes, and the stream is open.
        let got = unsafe { libc::fread(record.as_mut_ptr().cast(), 1, wanted, source.0) };
        if got == 0 {
            // SAFETY: the stream is open.
            if unsafe { libc::ferror(source.0) } != 0 {
                return Err(TransferError::Source("fread", io::Error::last_os_error()));
            }
            target.flush().map_err(|error| TransferError::Target("fflush", error))?;
            return Ok(RangeEnd::SourceEnded);
        }
        transfer.tally.call("fwrite");
        // SAFETY: the record has `got` bytes, and the stream is open.
        if unsafe { libc::fwrite(record.as_ptr().cast(), 1, got, target.0) } != got {
            return Err(TransferError::Target("fwrite", io::Error::last_os_error()));
        }
        *at += got as u64;
        unnoted += got as u64;
        if unnoted >= 1 << 20 {
            transfer.arrived(*at - unnoted, unnoted)?;
            unnoted = 0;
        }
    }
    target.flush().map_err(|error| TransferError::Target("fflush", error))?;

    transfer.arrived(*at - unnoted, unnoted)?;
    Ok(RangeEnd::Complete)
}
