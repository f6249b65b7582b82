//! Shares the blocks of small files.

use std::os::fd::{AsFd, OwnedFd};

use crate::context::{Context, Worker};
use crate::engine::{pair_refuses, share_blocks};
use crate::entry::Entry;
use crate::file_stat::FileStat;
use crate::open_target::OpenTarget;

/// Shares the blocks of a small file. The call costs as much CPU time as a read and a write, but the copy takes no space and
/// needs no writeback. Returns false if the file systems do not share blocks, or the options exclude it.
pub(crate) fn share_small(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: &OwnedFd,
    stat: &FileStat,
    target: &OpenTarget,
) -> bool {
    if !context.options.permits_sharing() || !context.may_share(stat.dev, entry.target_dev()) {
        return false;
    }
    match share_blocks(source.as_fd(), target.file.as_fd(), &mut worker.tally) {
        Ok(()) => true,
        Err(errno) => {
            if pair_refuses(errno) {
                context.note_refusal(stat.dev, entry.target_dev());
            }
            false
        }
    }
}
