//! Shares the blocks of two files: ioctl FICLONE.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::ioctl_ficlone;
use rustix::io::{Errno, retry_on_intr};

use crate::error::CopyError;
use crate::quote::quote;
use crate::tally::CopyTally;

pub(super) const FICLONE: &str = "ioctl FICLONE";

/// Shares all blocks of the source with the target.
pub(crate) fn share_blocks(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    tally: &mut CopyTally,
) -> Result<(), Errno> {
    tally.call(FICLONE);
    retry_on_intr(|| ioctl_ficlone(target, source))
}

/// Returns whether an error of [`share_blocks`] is one for all files of the two file systems.
pub(crate) fn pair_refuses(errno: Errno) -> bool {
    [Errno::XDEV, Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS].contains(&errno)
}

/// Returns the error of a copy that must share blocks and cannot.
pub(super) fn not_shared(path: &Path, errno: Errno) -> CopyError {
    let advice = match errno {
        Errno::XDEV => {
            "only files of one file system can share blocks: use --reflink=auto, which copies them"
        }
        errno if pair_refuses(errno) => {
            "this file system cannot share blocks (btrfs and XFS can): use --reflink=auto, which copies them"
        }
        _ => return CopyError::call(path, FICLONE, errno),
    };
    let path = quote(path.as_os_str().as_encoded_bytes());
    CopyError::Refused(format!("{path}: {FICLONE}: {} – {advice}", weir_sys::errno_text(&errno.into())))
}
