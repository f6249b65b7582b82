//! Finds the data of a file with holes.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::file_stat::FileStat;
use crate::tally::CopyTally;

/// Returns the bytes of a file's holes, as far as its file system reports them (SEEK_HOLE).
pub(crate) fn hole_bytes(source: BorrowedFd<'_>, stat: &FileStat, tally: &mut CopyTally) -> u64 {
    let (mut at, mut holes) = (0, 0);
    while stat.may_have_holes() && at < stat.size {
        match next_data(source, at, stat.size, tally) {
            Ok(Some((start, end))) => {
                holes += start - at;
                at = end;
            }
            Ok(None) => return holes + stat.size - at,
            Err(_) => return holes,
        }
    }
    holes
}

/// Returns the next part of the file that has data, from `at`; None if only a hole follows. Fails with EINVAL or EOPNOTSUPP
/// where the file system has no such call.
pub(super) fn next_data(
    source: BorrowedFd<'_>,
    at: u64,
    size: u64,
    tally: &mut CopyTally,
) -> Result<Option<(u64, u64)>, Errno> {
    if at >= size {
        return Ok(None);
    }
    tally.call("lseek");
    let start = match seek(source, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if start >= size {
        return Ok(None);
    }
    tally.call("lseek");
    let end = match seek(source, SeekFrom::Hole(start)) {
        Ok(end) => end.min(size),
        // The file has become shorter: the copy of the range finds out.
        Err(Errno::NXIO) => size,
        Err(errno) => return Err(errno),
    };
    Ok(Some((start, end.max(start + 1))))
}
