//! Shares the blocks of two files: ioctl FICLONE.

use std::os::fd::BorrowedFd;

use rustix::fs::ioctl_ficlone;
use rustix::io::{Errno, retry_on_intr};

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
