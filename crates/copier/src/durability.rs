//! Makes single files and names durable. `sync_ledger` does it for whole trees.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fdatasync, fstat, fsync, open, openat};

use crate::context::{Context, Worker};
use crate::control::{CopyControl, CopyPhase};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::options::CopySync;
use crate::tally::CopyTally;
use crate::volatile::is_volatile;

/// Notes a directory of the target that gets new names, for the sync at the end.
pub(crate) fn note_directory(context: &Context, path: &Path) -> CopyResult<()> {
    if context.options.sync_level() == CopySync::None {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).on(path, "open")?;
    let stat: FileStat = fstat(&directory).on(path, "fstat")?.into();
    context.ledger.note_directory(stat.dev, directory.as_fd(), path)
}

/// Makes one file durable, before its name changes.
pub(crate) fn sync_file(
    file: BorrowedFd<'_>,
    path: &Path,
    sync: CopySync,
    control: &CopyControl,
    tally: &mut CopyTally,
) -> CopyResult<()> {
    let call = match sync {
        CopySync::None => return Ok(()),
        CopySync::Data => "fdatasync",
        CopySync::Full => "fsync",
    };
    control.set_phase(CopyPhase::Syncing);
    let result = tally.sync(call, || if sync == CopySync::Full { fsync(file) } else { fdatasync(file) });
    control.set_phase(CopyPhase::Copying);
    result.on(path, call).map_err(not_durable)
}

/// Counts a file that was synced: as durable, unless its file system keeps it in memory.
pub(crate) fn count_synced(context: &Context, worker: &mut Worker, file: BorrowedFd<'_>, bytes: u64) {
    if is_volatile(file) {
        worker.tally.volatile_files += 1;
    } else {
        worker.tally.synced_files += 1;
        context.control.add_durable(bytes);
    }
}

/// Makes the name of an operand durable that is a link, a special file or a complete copy of an earlier run, if the options ask for
/// names. In trees the batch does it.
pub(crate) fn sync_operand_name(context: &Context, worker: &mut Worker, entry: &Entry) -> CopyResult<()> {
    match context.options.sync_level() {
        CopySync::Full if entry.is_operand() => sync_parent(entry, entry.target, &mut worker.tally),
        _ => Ok(()),
    }
}

/// Makes the name of a file durable: syncs its directory.
pub(crate) fn sync_parent(entry: &Entry, name: &CStr, tally: &mut CopyTally) -> CopyResult<()> {
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let base = if entry.is_operand() { CWD } else { entry.target_dir() };
    sync_directory(base, parent, tally)
}

/// Makes the names in a directory and its attributes durable. `path` is relative to `base`.
pub(crate) fn sync_directory(base: BorrowedFd<'_>, path: &Path, tally: &mut CopyTally) -> CopyResult<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(base, path, flags, Mode::empty()).on(path, "open")?;
    tally.sync("fsync", || fsync(directory.as_fd())).on(path, "fsync").map_err(not_durable)
}

/// Says what a failed sync means. The kernel reports an error once and may have dropped the bytes, so that another sync
/// would succeed without them.
pub(crate) fn not_durable(error: CopyError) -> CopyError {
    CopyError::Refused(format!(
        "{error} – the copy is not durable, and a second sync proves nothing: check the device (dmesg), then copy again"
    ))
}
