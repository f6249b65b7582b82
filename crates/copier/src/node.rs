//! Copies one entry of a directory, or one operand: calls the module for the type of its file.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, retry_on_intr};

use crate::context::{Context, Worker};
use crate::directory::open_directory;
use crate::entry::{DirPair, Entry};
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file::copy_regular;
use crate::file_stat::FileStat;
use crate::options::{FollowLinks, TargetKind};
use crate::special::{copy_special, make_link};
use crate::stream_file::copy_stream_file;
use crate::target::quoted;

/// Copies an entry. Returns a directory pair whose entries the caller must copy.
pub(crate) fn copy_node(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    hint: FileType,
) -> CopyResult<Option<Arc<DirPair>>> {
    context.control.check()?;
    let options = context.options;
    let follow = match options.follow {
        FollowLinks::Never => false,
        FollowLinks::Operands => entry.is_operand(),
        FollowLinks::Always => true,
    };
    // The usual case: the name of a regular file, which is opened without a call of stat.
    if hint == FileType::RegularFile && matches!(options.kind, TargetKind::Copy | TargetKind::Attributes) {
        return copy_opened(context, worker, entry, false);
    }
    let stat = entry.source_stat(follow).on(entry.source_path(), "stat")?;
    if stat.kind() == FileType::Directory {
        return open_directory(context, worker, entry, &stat, follow).map(Some);
    }
    if matches!(options.kind, TargetKind::HardLink | TargetKind::SymbolicLink) {
        return make_link(context, worker, entry, &stat, follow).map(|()| None);
    }
    match stat.kind() {
        FileType::RegularFile => copy_opened(context, worker, entry, follow),
        FileType::Symlink => copy_special(context, worker, entry, &stat).map(|()| None),
        _ if options.recursive && !options.copy_contents => {
            copy_special(context, worker, entry, &stat).map(|()| None)
        }
        _ => copy_stream_file(context, worker, entry, &stat).map(|()| None),
    }
}

/// Opens the source, which was a regular file a moment ago, and copies it.
fn copy_opened(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    follow: bool,
) -> CopyResult<Option<Arc<DirPair>>> {
    let source = open_source(entry, follow)?;
    let stat: FileStat = fstat(&source).on(entry.source_path(), "fstat")?.into();
    if stat.kind() != FileType::RegularFile {
        return Err(CopyError::Refused(format!(
            "{} was replaced while weir copied: it is no regular file any more",
            quoted(&entry.source_path())
        )));
    }
    copy_regular(context, worker, entry, source, &stat).map(|()| None)
}

fn open_source(entry: &Entry, follow: bool) -> CopyResult<OwnedFd> {
    // O_NONBLOCK: a FIFO that has taken the name does not block weir. Regular files ignore it.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !follow);
    let open = || openat(entry.source_dir(), entry.source, flags, Mode::empty());
    retry_on_intr(open).map_err(|errno: Errno| CopyError::call(entry.source_path(), "open", errno))
}
