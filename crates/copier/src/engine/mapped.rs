//! mmap(2) of the source. The kernel reads the mapping in write(2), so a source that shrinks never causes SIGBUS: the call fails
//! with EFAULT at a page behind the new end. The rest of the last page reads as NUL bytes; the comparison of the source's state
//! after the copy rejects such a copy.

use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::read_write::not_zero;
use super::{RangeEnd, RangeResult, Transfer, TransferError, is_refusal};

/// The part of the source that is mapped at a time.
const WINDOW_BYTES: u64 = 64 << 20;
/// The largest page of the supported processors: offsets of mappings are multiples of it.
const PAGE_BYTES: u64 = 1 << 16;

/// A mapped part of a file.
struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `mmap` with these values, and no reference to it exists.
        let _unmapped = unsafe { munmap(self.start, self.bytes) };
    }
}

/// Copies a range by writing from mappings of the source.
pub(super) fn copy_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    let stat =
        rustix::fs::fstat(transfer.source).map_err(|error| TransferError::Source("fstat", error.into()))?;
    // Pages behind the end cannot be read.
    let readable_end = end.min(stat.st_size as u64);
    while *at < readable_end {
        let start = *at / PAGE_BYTES * PAGE_BYTES;
        let window_end = readable_end.min(start + WINDOW_BYTES);
        let bytes = (window_end - start) as usize;
        transfer.tally.call("mmap");
        // SAFETY: a new mapping at an address of the kernel's choice. No Rust reference to it is made: only write(2) reads it.
        let mapped =
            unsafe { mmap(null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, transfer.source, start) };
        let mapping = match mapped {
            Ok(address) => Mapping { start: address, bytes },
            Err(errno) if is_refusal(errno) => {
                return Ok(RangeEnd::Refused { call: "mmap", errno: Some(errno) });
            }
            Err(errno) => return Err(TransferError::Source("mmap", errno.into())),
        };
        if !write_window(transfer, &mapping, start, at, window_end)? {
            return Ok(RangeEnd::Refused { call: "write", errno: Some(Errno::FAULT) });
        }
    }
    if *at < end { Ok(RangeEnd::SourceEnded) } else { Ok(RangeEnd::Complete) }
}

/// Writes from a mapping that begins at `start` of the file. Returns false if a page is not there.
fn write_window(
    transfer: &mut Transfer,
    mapping: &Mapping,
    start: u64,
    at: &mut u64,
    end: u64,
) -> Result<bool, TransferError> {
    use std::os::fd::AsRawFd as _;
    while *at < end {
        let wanted = transfer.next_chunk(*at, end);
        let inside = (*at - start) as usize;
        assert!(inside + wanted <= mapping.bytes);
        transfer.tally.call("write");
        // SAFETY: the range lies in the mapping (asserted). The kernel reads it and fails with EFAULT where the file has ended.
        let written = unsafe {
            let from = mapping.start.cast::<u8>().add(inside).cast_const().cast();
            libc::pwrite(transfer.target.as_raw_fd(), from, wanted, *at as libc::off_t)
        };
        // A call that returns 0 does not set errno.
        let written = match written {
            0.. => not_zero(written as usize),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        };
        match written {
            Ok(written) => {
                transfer.arrived(*at, written as u64)?;
                *at += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::FAULT) => return Ok(false),
            Err(errno) => return Err(TransferError::Target("write", errno.into())),
        }
    }
    Ok(true)
}
