//! Makes trees durable in one batch at the end: syncfs(2) of each file system, or fsync(2) of the few files that were copied.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{CWD, Mode, OFlags, fstatfs, fsync, openat, syncfs};
use rustix::io::Errno;
use weir_sys::page_cache::{dirty_bytes_of_machine, start_writeback};

use crate::control::{CopyControl, CopyPhase};
use crate::durability::{not_durable, sync_directory};
use crate::error::{CopyError, CopyResult, OnPath};
use crate::tally::CopyTally;
use crate::volatile::is_volatile;

/// Writeback of files of at least this size starts as soon as they are copied. For smaller ones the call costs more than
/// it gains.
const EARLY_BYTES: u64 = 64 << 10;
/// At most this many files and directories of a file system stay open until the end, so that fsync(2) of each is possible. More
/// of them are made durable by syncfs(2) in any case: each fsync(2) is a write to the journal.
const MAX_HELD: usize = 16;
/// Dirty bytes of other programs from which syncfs(2) costs more than fsync(2) of a few files: at 500 MB/s a quarter of a
/// second.
const FOREIGN_DIRTY_BYTES: u64 = 128 << 20;
/// File systems whose syncfs(2) does not make the server write to its storage (magic numbers of statfs(2)): FUSE, CIFS and
/// SMB2.
const WITHOUT_SYNCFS: [u64; 3] = [0x6573_5546, 0xff53_4d42, 0xfe53_4d42];

/// The file systems that a tree was copied to, by device number.
#[derive(Debug, Default)]
pub(crate) struct SyncLedger(Mutex<BTreeMap<u64, SyncedFileSystem>>);

#[derive(Debug)]
struct SyncedFileSystem {
    /// Open since before the first byte was written: syncfs(2) reports the errors since then. None if syncfs(2) is of no use
    /// here, so that each file is synced by itself, and [`Self::directories`] at the end.
    directory: Option<OwnedFd>,
    /// All target directories, if `directory` is None.
    directories: BTreeSet<PathBuf>,
    path: PathBuf,
    is_volatile: bool,
    files: u64,
    bytes: u64,
    /// Files and directories for fsync(2). None if there were more than [`MAX_HELD`].
    held: Option<Vec<(OwnedFd, PathBuf)>>,
}

impl SyncedFileSystem {
    fn new(directory: OwnedFd, path: &Path) -> Self {
        let kind = fstatfs(&directory).map_or(0, |found| found.f_type as u64 & 0xffff_ffff);
        let has_syncfs = !WITHOUT_SYNCFS.contains(&kind);
        let is_volatile = is_volatile(directory.as_fd());
        Self {
            directory: has_syncfs.then_some(directory),
            directories: BTreeSet::new(),
            path: path.into(),
            is_volatile,
            files: 0,
            bytes: 0,
            held: Some(Vec::new()),
        }
    }

    /// Keeps a file or a directory open for fsync(2).
    fn hold(&mut self, file: BorrowedFd<'_>, path: &dyn Fn() -> PathBuf) {
        let Some(held) = &mut self.held else { return };
        match file.try_clone_to_owned() {
            Ok(own) if held.len() < MAX_HELD => held.push((own, path())),
            _ => self.held = None,
        }
    }

    /// Makes everything that the batch covers durable. Returns the errors.
    fn sync(&mut self, tally: &mut CopyTally) -> Vec<CopyError> {
        let Some(directory) = &self.directory else {
            let sync = |path: &PathBuf| sync_directory(CWD, path, tally).err();
            return self.directories.iter().filter_map(sync).collect();
        };
        match self.held.take() {
            Some(held) if foreign_dirty_bytes(self.bytes) > FOREIGN_DIRTY_BYTES => held
                .iter()
                .filter_map(|(file, path)| failure(tally.sync("fsync", || fsync(file)), path, "fsync"))
                .collect(),
            _ => {
                let synced = tally.sync("syncfs", || syncfs(directory));
                failure(synced, &self.path, "syncfs").into_iter().collect()
            }
        }
    }
}

fn failure(result: Result<(), Errno>, path: &Path, call: &'static str) -> Option<CopyError> {
    result.err().map(|errno| not_durable(CopyError::call(path, call, errno)))
}

/// Returns an estimate of the machine's dirty bytes that this copy did not write.
fn foreign_dirty_bytes(own: u64) -> u64 {
    dirty_bytes_of_machine().map_or(0, |dirty| dirty.saturating_sub(own))
}

impl SyncLedger {
    /// Notes a target directory.
    pub fn note_directory(&self, device: u64, directory: BorrowedFd<'_>, path: &Path) -> CopyResult<()> {
        let mut ledger = self.locked();
        if let std::collections::btree_map::Entry::Vacant(vacant) = ledger.entry(device) {
            // An open file of its own reports the errors that a sync of another open file has already reported.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let own = openat(directory, c".", flags, Mode::empty()).on(path, "open")?;
            vacant.insert(SyncedFileSystem::new(own, path));
        }
        match ledger.get_mut(&device) {
            Some(system) if system.directory.is_some() => system.hold(directory, &|| path.into()),
            Some(system) => drop(system.directories.insert(path.into())),
            None => {}
        }
        Ok(())
    }

    /// Notes a copied file, and starts to write it to the device. Returns false if the batch does not sync it: its file
    /// system has no directory in the ledger (the target was a symbolic link to another file system, or a single file), or
    /// no syncfs(2). The caller must sync it then.
    pub fn note_file(
        &self,
        device: u64,
        file: BorrowedFd<'_>,
        path: &dyn Fn() -> PathBuf,
        bytes: u64,
        tally: &mut CopyTally,
    ) -> bool {
        let mut ledger = self.locked();
        let Some(system) = ledger.get_mut(&device).filter(|system| system.directory.is_some()) else {
            return false;
        };
        system.files += 1;
        system.bytes += bytes;
        system.hold(file, path);
        drop(ledger);
        if bytes >= EARLY_BYTES {
            tally.call("sync_file_range");
            // The sync at the end writes what this call does not.
            let _started = start_writeback(file, 0, 0);
        }
        true
    }

    /// Makes everything durable. Returns the errors: each is final, because a second sync could succeed without the bytes.
    pub fn sync(&self, control: &CopyControl, tally: &mut CopyTally) -> Vec<CopyError> {
        let mut errors = Vec::new();
        for system in self.locked().values_mut() {
            control.set_phase(CopyPhase::Syncing);
            let failed = system.sync(tally);
            if failed.is_empty() && system.is_volatile {
                tally.volatile_files += system.files;
            } else if failed.is_empty() {
                tally.synced_files += system.files;
                control.add_durable(system.bytes);
            }
            errors.extend(failed);
        }
        errors
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<u64, SyncedFileSystem>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
