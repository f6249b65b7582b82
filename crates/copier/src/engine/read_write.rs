//! The engine that copies a range with pread(2) and pwrite(2), and the reads and writes in full that other engines use too.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, pread, pwrite, retry_on_intr, write};

use super::{RangeEnd, RangeResult, Transfer, TransferError};
use crate::tally::CopyTally;

/// The unit in which NUL bytes become holes: the block of most file systems.
const HOLE_UNIT: usize = 4096;

/// Copies `*at..end` through the buffer. Moves `*at` past each block that is written, also before an error.
pub(super) fn copy_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    while *at < end {
        let wanted = transfer.next_chunk(*at, end).min(transfer.buffer.len());
        transfer.tally.call("read");
        let read = retry_on_intr(|| pread(transfer.source, &mut transfer.buffer[..wanted], *at));
        let got = read.map_err(|error| TransferError::Source("read", error.into()))?;
        if got == 0 {
            return Ok(RangeEnd::SourceEnded);
        }
        put(transfer, *at, got)?;
        transfer.arrived(*at, got as u64)?;
        *at += got as u64;
    }
    Ok(RangeEnd::Complete)
}

/// Writes the first `bytes` of the buffer, without blocks of NUL bytes if the transfer skips them.
pub(crate) fn put(transfer: &mut Transfer, at: u64, bytes: usize) -> Result<(), TransferError> {
    let data = &transfer.buffer[..bytes];
    if !transfer.skip_zeros {
        return pwrite_all(transfer.target, data, at, transfer.tally);
    }
    transfer.zero_bytes += pwrite_without_zeros(transfer.target, data, at, transfer.tally)?;
    Ok(())
}

/// Writes data at an offset, without its blocks of NUL bytes. Returns the number of bytes that it left out.
pub(super) fn pwrite_without_zeros(
    target: BorrowedFd<'_>,
    data: &[u8],
    at: u64,
    tally: &mut CopyTally,
) -> Result<u64, TransferError> {
    let mut start = 0;
    let mut zero_bytes = 0;
    while start < data.len() {
        let (is_zero, length) = zero_run(&data[start..], at + start as u64);
        let part = &data[start..start + length];
        if is_zero {
            zero_bytes += length as u64;
        } else {
            pwrite_all(target, part, at + start as u64, tally)?;
        }
        start += length;
    }
    Ok(zero_bytes)
}

/// Returns whether the data begins with a block of NUL bytes, and the length of the run of such blocks, or of others.
fn zero_run(data: &[u8], offset: u64) -> (bool, usize) {
    // Blocks are aligned in the file, so the first one may be shorter.
    let first = HOLE_UNIT - (offset % HOLE_UNIT as u64) as usize;
    let mut length = first.min(data.len());
    let is_zero = is_all_zero(&data[..length]);
    while length < data.len() {
        let next = &data[length..(length + HOLE_UNIT).min(data.len())];
        if is_all_zero(next) != is_zero {
            break;
        }
        length += next.len();
    }
    (is_zero, length)
}

fn is_all_zero(data: &[u8]) -> bool {
    // The first bytes decide in most blocks of data; the rest compares a slice with itself, shifted by one byte.
    data.split_first().is_none_or(|(first, rest)| *first == 0 && rest == &data[..rest.len()])
}

/// Writes all bytes at an offset.
pub(super) fn pwrite_all(
    target: BorrowedFd<'_>,
    mut data: &[u8],
    mut at: u64,
    tally: &mut CopyTally,
) -> Result<(), TransferError> {
    while !data.is_empty() {
        tally.call("write");
        let written = retry_on_intr(|| pwrite(target, data, at)).and_then(not_zero);
        let written = written.map_err(|error| TransferError::Target("write", error.into()))?;
        data = &data[written..];
        at += written as u64;
    }
    Ok(())
}

/// Writes all bytes at the file offset.
pub(crate) fn write_all(target: BorrowedFd<'_>, mut data: &[u8], tally: &mut CopyTally) -> Result<(), Errno> {
    while !data.is_empty() {
        tally.call("write");
        let written = retry_on_intr(|| write(target, data)).and_then(not_zero)?;
        data = &data[written..];
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
pub(crate) fn pread_full(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match retry_on_intr(|| pread(file, &mut buffer[filled..], at + filled as u64))? {
            0 => break,
            got => filled += got,
        }
    }
    Ok(filled)
}

/// Turns a write of 0 bytes into EIO: the loops of the engine would repeat it for ever.
pub(super) fn not_zero(written: usize) -> Result<usize, Errno> {
    if written == 0 { Err(Errno::IO) } else { Ok(written) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_nul_bytes_are_found_by_aligned_blocks() {
        let mut data = vec![0; 3 * HOLE_UNIT];
        assert_eq!(zero_run(&data, 0), (true, 3 * HOLE_UNIT));
        data[2 * HOLE_UNIT - 1] = 1;
        assert_eq!(zero_run(&data, 0), (true, HOLE_UNIT));
        assert_eq!(zero_run(&data[HOLE_UNIT..], 4096), (false, HOLE_UNIT));
        assert_eq!(zero_run(&data, 4090), (true, HOLE_UNIT + 6));
        assert_eq!(zero_run(&[1], 17), (false, 1));
        assert_eq!(zero_run(&[0], 17), (true, 1));
    }
}
