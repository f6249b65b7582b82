//! Copies between descriptors of which one has no offsets: pipes, terminals, sockets, devices.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::ftruncate;
use rustix::io::{read, retry_on_intr};
use rustix::pipe::{SpliceFlags, splice};

use super::read_write::pwrite_without_zeros;
use super::{is_refusal, write_all};
use crate::buffer::AlignedBuffer;
use crate::control::CopyControl;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::options::CopyMethod;
use crate::tally::CopyTally;

/// The files of a stream's copy and their names for messages.
pub(crate) struct StreamJob<'a> {
    pub source: BorrowedFd<'a>,
    pub source_path: &'a Path,
    pub target: BorrowedFd<'a>,
    pub target_path: &'a Path,
    /// The source is a pipe, so that splice(2) moves its pages without a copy.
    pub source_is_pipe: bool,
    pub chunk: usize,
    /// Blocks of NUL bytes become holes. The target is an empty file.
    pub makes_holes: bool,
}

/// The number of bytes that were copied, and the method.
pub(crate) struct StreamResult {
    pub bytes: u64,
    /// Those of them that are holes in the target.
    pub hole_bytes: u64,
    pub method: CopyMethod,
}

/// Copies until the source ends.
pub(crate) fn copy_stream(
    job: &StreamJob,
    method: CopyMethod,
    control: &CopyControl,
    buffer: &mut AlignedBuffer,
    tally: &mut CopyTally,
) -> CopyResult<StreamResult> {
    let mut result = StreamResult { bytes: 0, hole_bytes: 0, method: CopyMethod::Splice };
    // From a file into a pipe, splice(2) would pass pages that a later write to the file still changes.
    let splices =
        job.source_is_pipe && !job.makes_holes && matches!(method, CopyMethod::Auto | CopyMethod::Splice);
    if splices && splice_all(job, control, tally, &mut result.bytes)? {
        return Ok(result);
    }
    result.method = CopyMethod::ReadWrite;
    let chunk = control.chunk(job.chunk);
    buffer.grow(chunk);
    loop {
        tally.call("read");
        let got = retry_on_intr(|| {
            control.check().map_err(|_| rustix::io::Errno::CANCELED)?;
            read(job.source, &mut buffer[..chunk])
        });
        control.check()?;
        match got.on(job.source_path, "read")? {
            0 => break,
            got => {
                result.hole_bytes += put(job, result.bytes, &buffer[..got], tally)?;
                result.bytes += got as u64;
                control.advance(got as u64)?;
            }
        }
    }
    if result.hole_bytes > 0 {
        retry_on_intr(|| ftruncate(job.target, result.bytes)).on(job.target_path, "ftruncate")?;
    }
    Ok(result)
}

/// Writes the bytes that follow the first `at`. Returns the number of those that became holes.
fn put(job: &StreamJob, at: u64, data: &[u8], tally: &mut CopyTally) -> CopyResult<u64> {
    if !job.makes_holes {
        write_all(job.target, data, tally).on(job.target_path, "write")?;
        return Ok(0);
    }
    let left_out = pwrite_without_zeros(job.target, data, at, tally);
    left_out.map_err(|error| error.on(job.source_path, job.target_path))
}

/// Moves bytes from a pipe by splice(2). Returns false if the kernel refuses; all bytes that left the pipe have arrived.
fn splice_all(
    job: &StreamJob,
    control: &CopyControl,
    tally: &mut CopyTally,
    bytes: &mut u64,
) -> CopyResult<bool> {
    const CALL: &str = "splice";
    const MAX_CHUNK: usize = 1 << 20;
    loop {
        tally.call(CALL);
        let chunk = control.chunk(MAX_CHUNK);
        let moved = splice(job.source, None, job.target, None, chunk, SpliceFlags::MOVE);
        match moved {
            Ok(0) => return Ok(true),
            Ok(moved) => {
                *bytes += moved as u64;
                control.advance(moved as u64)?;
            }
            Err(rustix::io::Errno::INTR) => control.check()?,
            Err(errno) if is_refusal(errno) => return Ok(false),
            Err(errno) => return Err(CopyError::call(job.target_path, CALL, errno)),
        }
    }
}
