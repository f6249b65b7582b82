//! Makes copies durable: single files at once, trees in one batch at the end.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{CWD, Mode, OFlags, fdatasync, fsync, openat, syncfs};
use weir_sys::page_cache::start_writeback;

use crate::control::{CopyControl, CopyPhase};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::options::CopySync;
use crate::tally::CopyTally;

/// Files of this size are given to the device as soon as they are copied. For smaller ones the call costs more than it
/// gains.
const EARLY_BYTES: u64 = 64 << 10;

/// The file systems that a tree was copied to, each with a descriptor that was open before the first byte was written:
/// syncfs(2) reports the errors since then.
#[derive(Debug, Default)]
pub(crate) struct SyncLedger(Mutex<BTreeMap<u64, SyncedFileSystem>>);

#[derive(Debug)]
struct SyncedFileSystem {
    directory: OwnedFd,
    path: PathBuf,
    files: u64,
    bytes: u64,
}

impl SyncLedger {
    /// Notes a target directory.
    pub fn note_directory(&self, device: u64, directory: BorrowedFd<'_>, path: &Path) -> CopyResult<()> {
        let mut ledger = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let std::collections::btree_map::Entry::Vacant(vacant) = ledger.entry(device) {
            // O_PATH descriptors have no record of errors, so the directory is opened again.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let own = openat(directory, c".", flags, Mode::empty()).on(path, "open")?;
            vacant.insert(SyncedFileSystem { directory: own, path: path.into(), files: 0, bytes: 0 });
        }
        Ok(())
    }

    /// Notes a copied file, and starts to write it to the device.
    pub fn note_file(&self, device: u64, file: BorrowedFd<'_>, bytes: u64) {
        if bytes >= EARLY_BYTES {
            // The sync at the end writes what this call does not.
            let _started = start_writeback(file, 0, 0);
        }
        let mut ledger = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(system) = ledger.get_mut(&device) {
            system.files += 1;
            system.bytes += bytes;
        }
    }

    /// Makes everything durable. Returns the errors: each is final, because a second sync could succeed without the bytes.
    pub fn sync(&self, control: &CopyControl, tally: &mut CopyTally) -> Vec<CopyError> {
        let mut ledger = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut errors = Vec::new();
        for system in ledger.values_mut() {
            control.set_phase(CopyPhase::Syncing);
            tally.call("syncfs");
            match syncfs(&system.directory) {
                Ok(()) => {
                    tally.synced_files += system.files;
                    control.add_durable(system.bytes);
                }
                Err(errno) => errors.push(not_durable(CopyError::call(&system.path, "syncfs", errno))),
            }
        }
        errors
    }
}

/// Makes one file durable, before its name changes.
pub(crate) fn sync_file(
    file: BorrowedFd<'_>,
    path: &Path,
    sync: CopySync,
    control: &CopyControl,
    tally: &mut CopyTally,
) -> CopyResult<()> {
    let (call, result) = match sync {
        CopySync::None => return Ok(()),
        CopySync::Data => ("fdatasync", fdatasync_once(file, control)),
        CopySync::Full => ("fsync", fsync_once(file, control)),
    };
    tally.call(call);
    result.on(path, call).map_err(not_durable)
}

fn fdatasync_once(file: BorrowedFd<'_>, control: &CopyControl) -> Result<(), rustix::io::Errno> {
    control.set_phase(CopyPhase::Syncing);
    let result = fdatasync(file);
    control.set_phase(CopyPhase::Copying);
    result
}

fn fsync_once(file: BorrowedFd<'_>, control: &CopyControl) -> Result<(), rustix::io::Errno> {
    control.set_phase(CopyPhase::Syncing);
    let result = fsync(file);
    control.set_phase(CopyPhase::Copying);
    result
}

/// Makes the name of a file durable: syncs its directory.
pub(crate) fn sync_parent(entry: &Entry, name: &CStr, tally: &mut CopyTally) -> CopyResult<()> {
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let base = if entry.is_operand() { CWD } else { entry.target_dir() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(base, parent, flags, Mode::empty()).on(parent, "open")?;
    tally.call("fsync");
    fsync(directory.as_fd()).on(parent, "fsync").map_err(not_durable)
}

/// Says what a failed sync means. The kernel reports an error once and may have dropped the bytes, so that another sync
/// would succeed without them.
fn not_durable(error: CopyError) -> CopyError {
    CopyError::Refused(format!(
        "{error} – the copy is not durable, and a second sync proves nothing: check the device (dmesg), then copy again"
    ))
}
