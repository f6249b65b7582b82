//! read(2) and write(2) with O_DIRECT, past the page cache. The unaligned end goes through the page cache.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, statx};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use super::{RangeEnd, RangeResult, Transfer, TransferError, is_refusal, read_write};
use crate::buffer::ALIGNMENT;

/// O_DIRECT on both files until it is dropped.
struct DirectFlags<'a>([(BorrowedFd<'a>, OFlags); 2]);

impl<'a> DirectFlags<'a> {
    fn set(source: BorrowedFd<'a>, target: BorrowedFd<'a>) -> Result<Self, Errno> {
        let flags = Self([(source, fcntl_getfl(source)?), (target, fcntl_getfl(target)?)]);
        for (file, before) in &flags.0 {
            fcntl_setfl(file, *before | OFlags::DIRECT)?;
        }
        Ok(flags)
    }
}

impl Drop for DirectFlags<'_> {
    fn drop(&mut self) {
        for (file, before) in &self.0 {
            let _ = fcntl_setfl(file, *before);
        }
    }
}

/// Copies the aligned part of a range directly, then the rest through the page cache.
pub(super) fn copy_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    let unit = alignment(transfer.source).max(alignment(transfer.target));
    if unit > ALIGNMENT as u64 || !(*at).is_multiple_of(unit) {
        return Ok(RangeEnd::Refused { call: "O_DIRECT", errno: Some(Errno::INVAL) });
    }
    let aligned_end = if end == u64::MAX { end - end % unit } else { end / unit * unit };
    let ended = {
        let (source, target) = (transfer.source, transfer.target);
        match DirectFlags::set(source, target) {
            Ok(_flags) => copy_aligned(transfer, at, aligned_end, unit)?,
            Err(errno) => return Ok(RangeEnd::Refused { call: "fcntl O_DIRECT", errno: Some(errno) }),
        }
    };
    match ended {
        RangeEnd::Complete => read_write::copy_to(transfer, at, end),
        other => Ok(other),
    }
}

fn copy_aligned(transfer: &mut Transfer, at: &mut u64, end: u64, unit: u64) -> RangeResult {
    while *at < end {
        let chunk = transfer.next_chunk(*at, end).min(transfer.buffer.len());
        let wanted = (chunk as u64 / unit * unit).max(unit) as usize;
        transfer.tally.call("read");
        let read = retry_on_intr(|| pread(transfer.source, &mut transfer.buffer[..wanted], *at));
        let got = match read {
            Ok(got) => got as u64 / unit * unit,
            Err(errno) if is_refusal(errno) => {
                return Ok(RangeEnd::Refused { call: "read", errno: Some(errno) });
            }
            Err(errno) => return Err(TransferError::Source("read", errno.into())),
        };
        if got == 0 {
            // The end of the source is nearer than a unit.
            return Ok(RangeEnd::Complete);
        }
        let mut put = 0;
        while put < got {
            transfer.tally.call("write");
            let data = &transfer.buffer[put as usize..got as usize];
            match retry_on_intr(|| pwrite(transfer.target, data, *at + put)) {
                Ok(written) if written as u64 >= unit => put += written as u64 / unit * unit,
                Ok(_) => return Ok(RangeEnd::Refused { call: "write", errno: None }),
                Err(errno) if is_refusal(errno) => {
                    return Ok(RangeEnd::Refused { call: "write", errno: Some(errno) });
                }
                Err(errno) => return Err(TransferError::Target("write", errno.into())),
            }
        }
        transfer.arrived(*at, got)?;
        *at += got;
    }
    Ok(RangeEnd::Complete)
}

/// Returns the unit of direct I/O of a file: statx(2) with STATX_DIOALIGN (Linux 6.1), otherwise the usual 4096.
fn alignment(file: BorrowedFd<'_>) -> u64 {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match stat {
        Ok(stat) if stat.stx_dio_offset_align > 0 => {
            u64::from(stat.stx_dio_offset_align.max(stat.stx_dio_mem_align))
        }
        _ => ALIGNMENT as u64,
    }
}
