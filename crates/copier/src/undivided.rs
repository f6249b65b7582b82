//! `--resume`: the temporary file of a small file, which is copied at once, without a journal. Its name is the same in each run, so
//! that the next run replaces what a kill left. A lock on it tells whether another weir still writes it.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use crate::context::Context;
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::journal::{MAX_ATTEMPTS, busy, check_own, lock, name};
use crate::target::create_new;

/// Creates the temporary file of a target and locks it. The lock ends with the last descriptor of the file, after the rename.
pub(crate) fn create_undivided(
    context: &Context,
    entry: &Entry,
    target: &CStr,
    mode: u32,
) -> CopyResult<(OwnedFd, CString)> {
    let temporary = name(target, ".new");
    let named = entry.with_target(&temporary);
    let path = named.target_path();
    for _ in 0..MAX_ATTEMPTS {
        match create_new(&named, mode) {
            Ok(file) if has_lock_and_name(&file, &path)? => return Ok((file, temporary)),
            // Another weir has locked or removed the file before the lock: it took it for that of a killed run.
            Ok(_) => {}
            Err(Errno::EXIST) => remove_rest(context, &named, entry)?,
            Err(errno) => return Err(CopyError::creation(entry.target_path(), "open", errno)),
        }
    }
    Err(busy(entry, &path))
}

/// Locks a file that was just created. Returns false if another process has locked it, or has removed its name.
fn has_lock_and_name(file: &OwnedFd, path: &Path) -> CopyResult<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(FileStat::from(fstat(file).on(path, "fstat")?).links > 0),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(CopyError::call(path, "flock", errno)),
    }
}

/// Removes the temporary file that a killed run left. Fails if another weir still writes it.
fn remove_rest(context: &Context, named: &Entry, entry: &Entry) -> CopyResult<()> {
    let path = named.target_path();
    let file = match open_rest(named) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(CopyError::call(&path, "open", errno)),
    };
    let stat: FileStat = fstat(&file).on(&path, "fstat")?.into();
    if stat.links == 0 {
        return Ok(());
    }
    check_own(&stat, &path)?;
    if !lock(context, &file, &path)? {
        return Err(busy(entry, &path));
    }
    // Meanwhile the other weir may have given the file its name, and a third one may have made another.
    match named.target_stat(false) {
        Ok(now) if now.id() == stat.id() => {
            unlinkat(named.target_dir(), named.target, AtFlags::empty()).on(&path, "unlink")
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(CopyError::call(&path, "fstatat", errno)),
    }
}

/// Opens it for writing, which NFS demands for a lock; for reading if its permissions forbid writing.
fn open_rest(named: &Entry) -> Result<OwnedFd, Errno> {
    let open = |access: OFlags| {
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        retry_on_intr(|| openat(named.target_dir(), named.target, flags, Mode::empty()))
    };
    open(OFlags::WRONLY).or_else(|errno| match errno {
        Errno::ACCESS | Errno::PERM => open(OFlags::RDONLY),
        _ => Err(errno),
    })
}
