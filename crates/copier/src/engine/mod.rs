//! Moves the bytes of one file. A method copies a range of the source to the same offsets of the target. It may stop half
//! way because the kernel refuses; another method then continues at the offset that the first one has reached, so that no
//! byte is missing or written twice.

mod content;
mod direct;
mod holes;
mod in_kernel;
mod mapped;
#[cfg(test)]
mod property_test;
mod read_write;
mod share;
mod stdio;
mod stream;
mod trial;
mod uring;
mod window;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

pub(crate) use content::copy_content;
pub use content::{ContentJob, ContentResult, Fallback};
pub(crate) use holes::hole_bytes;
pub(crate) use read_write::{pread_full, put, write_all};
pub(crate) use share::{pair_refuses, share_blocks};
pub(crate) use stream::{StreamJob, copy_stream};
pub use trial::TrialResult;
pub(crate) use window::CacheWindow;

use crate::buffer::AlignedBuffer;
use crate::control::CopyControl;
use crate::error::CopyError;
use crate::options::CopyMethod;
use crate::quote::quote;
use crate::tally::CopyTally;

/// The files, the buffer and the counts that a method works with.
pub(crate) struct Transfer<'a> {
    pub source: BorrowedFd<'a>,
    pub target: BorrowedFd<'a>,
    pub control: &'a CopyControl,
    pub tally: &'a mut CopyTally,
    pub buffer: &'a mut AlignedBuffer,
    /// The bytes that one call moves at most.
    pub chunk: usize,
    /// The user chose the chunk by `--buffer`.
    pub chunk_is_chosen: bool,
    /// Blocks of NUL bytes are not written. The target must have no data there.
    pub skip_zeros: bool,
    /// The bytes of `skip_zeros`.
    pub zero_bytes: u64,
    pub window: Option<CacheWindow>,
}

/// How a method ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeEnd {
    /// All bytes of the range are in the target.
    Complete,
    /// The source has no more bytes.
    SourceEnded,
    /// The kernel does not offer this method for these files. The bytes before the position are in the target.
    Refused { call: &'static str, errno: Option<Errno> },
}

/// An error of one side of a copy.
#[derive(Debug)]
pub(crate) enum TransferError {
    Source(&'static str, io::Error),
    Target(&'static str, io::Error),
    Stopped(CopyError),
}

impl TransferError {
    /// Names the file of an error of read(2) or write(2).
    pub fn on(self, source: &std::path::Path, target: &std::path::Path) -> CopyError {
        match self {
            Self::Source(call, error) => CopyError::call(source, call, error),
            Self::Target(call, error) => CopyError::call(target, call, error),
            Self::Stopped(error) => error,
        }
    }

    /// Names the file of an error. sendfile, splice and copy_file_range report errors of both files.
    fn on_files(self, job: &ContentJob) -> CopyError {
        match self {
            Self::Target(call, error)
                if error.raw_os_error() == Some(libc::EIO) && !call.contains("write") =>
            {
                CopyError::Refused(format!(
                    "{} or {}: {call}: {} – one of their devices failed: see dmesg",
                    quote(job.source_path.as_os_str().as_encoded_bytes()),
                    quote(job.target_path.as_os_str().as_encoded_bytes()),
                    weir_sys::errno_text(&error)
                ))
            }
            error => error.on(job.source_path, job.target_path),
        }
    }
}

impl From<CopyError> for TransferError {
    fn from(error: CopyError) -> Self {
        Self::Stopped(error)
    }
}

type RangeResult = Result<RangeEnd, TransferError>;

/// Copies from a position, which it moves, to an end.
type RangeMethod = fn(&mut Transfer, &mut u64, u64) -> RangeResult;

/// Returns the function of a method that copies ranges.
fn range_method(method: CopyMethod) -> RangeMethod {
    match method {
        CopyMethod::CopyFileRange => in_kernel::copy_file_range_to,
        CopyMethod::Splice => in_kernel::splice_to,
        CopyMethod::Sendfile => in_kernel::sendfile_to,
        CopyMethod::IoUring => uring::copy_to,
        CopyMethod::Mmap => mapped::copy_to,
        CopyMethod::Direct => direct::copy_to,
        CopyMethod::Stdio => stdio::copy_to,
        CopyMethod::Auto | CopyMethod::Reflink | CopyMethod::ReadWrite => read_write::copy_to,
    }
}

/// Returns whether errno says that the kernel cannot do a call on these files, rather than that the files have a problem.
fn is_refusal(errno: Errno) -> bool {
    [
        Errno::XDEV,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::NOTTY,
        Errno::PERM,
        Errno::BADF,
        Errno::ISDIR,
        Errno::OVERFLOW,
        Errno::TXTBSY,
        Errno::NODEV,
        Errno::ACCESS,
    ]
    .contains(&errno)
}

impl Transfer<'_> {
    /// Notes that a method reads the source from `offset` next.
    pub fn enter(&mut self, offset: u64) {
        if let Some(window) = &mut self.window {
            window.enter(self.source, self.target, offset, self.tally);
        }
    }

    /// Notes bytes that arrived in the target, from `offset`: for progress, the rate limit and the page cache.
    pub fn arrived(&mut self, offset: u64, bytes: u64) -> Result<(), TransferError> {
        if let Some(window) = &mut self.window {
            window.passed(self.source, self.target, offset + bytes, self.tally);
        }
        Ok(self.control.advance(bytes)?)
    }

    /// Returns how many bytes the next call moves.
    pub fn next_chunk(&self, at: u64, end: u64) -> usize {
        let chunk = self.control.chunk(self.chunk);
        usize::try_from(end - at).map_or(chunk, |left| left.min(chunk))
    }
}
