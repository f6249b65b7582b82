//! Decides what happens to a target that exists, and opens targets.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use crate::backup::make_backup;
use crate::context::{Context, Worker};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::options::{BackupNames, Existing, FollowLinks, TargetKind};
use crate::quote::quote;
use crate::same_file::{SameFile, check_same_file};

/// The file, if any, in the place of the target.
#[derive(Debug)]
pub(crate) enum TargetState {
    /// There is no file, or it was renamed to the backup or removed.
    Absent { backup: Option<PathBuf> },
    /// A file that weir overwrites. `is_link`: its name is a symbolic link.
    Present { stat: FileStat, is_link: bool },
    /// A file that stays as it is.
    Keep,
}

/// Decides what happens to the target. Renames or removes it if the options say so.
pub(crate) fn prepare_target(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: &FileStat,
) -> CopyResult<TargetState> {
    let named = match entry.target_stat(false) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(TargetState::Absent { backup: None }),
        Err(errno) => return Err(CopyError::call(entry.target_path(), "stat", errno)),
    };
    let is_link = named.kind() == FileType::Symlink;
    let followed = if is_link { entry.target_stat(true) } else { Ok(named) };
    let options = context.options;
    if check_same_file(context, entry, source, &named, followed.as_ref().ok())? == SameFile::Done {
        return Ok(TargetState::Keep);
    }
    if is_kept(context, entry, source, followed.as_ref().unwrap_or(&named))? {
        worker.tally.skipped += 1;
        return Ok(TargetState::Keep);
    }
    if named.kind() == FileType::Directory
        || (!options_replace_link(context, source)
            && followed.as_ref().is_ok_and(|stat| stat.kind() == FileType::Directory))
    {
        return Err(CopyError::Refused(format!(
            "cannot overwrite directory {} with non-directory {}",
            quoted(&entry.target_path()),
            quoted(&entry.source_path())
        )));
    }
    if context.has_created(&named) && options.backup != Some(BackupNames::Numbered) {
        return Err(CopyError::Refused(format!(
            "will not overwrite just-created {} with {}",
            quoted(&entry.target_path()),
            quoted(&entry.source_path())
        )));
    }
    if let Some(names) = options.backup {
        let backup = make_backup(entry, options, names)?;
        let backup = entry.with_target(&backup).target_path();
        return Ok(TargetState::Absent { backup: Some(backup) });
    }
    let shares_inode = options.preserved.links && named.links > 1 && named.kind() == FileType::RegularFile;
    // `--attributes-only` keeps the content, which the other names share.
    let copies_data = options.kind != TargetKind::Attributes;
    let replaces = copies_data && (shares_inode || options_replace_link(context, source));
    if options.remove_destination || replaces {
        remove_target(entry)?;
        return Ok(TargetState::Absent { backup: None });
    }
    match followed {
        Ok(stat) => Ok(TargetState::Present { stat, is_link }),
        Err(_) if options.kind != TargetKind::Copy => Ok(TargetState::Present { stat: named, is_link }),
        Err(_) => Err(CopyError::Refused(format!(
            "not writing through dangling symlink {} – remove it, or use --remove-destination",
            quoted(&entry.target_path())
        ))),
    }
}

/// Returns whether the source is no regular file and replaces the target, as cp does with `-P`.
fn options_replace_link(context: &Context, source: &FileStat) -> bool {
    context.options.follow == FollowLinks::Never && source.kind() != FileType::RegularFile
}

/// Returns whether an existing target stays: by `-n`, `-u`, or by the answer to `-i`.
fn is_kept(context: &Context, entry: &Entry, source: &FileStat, target: &FileStat) -> CopyResult<bool> {
    let options = context.options;
    match options.existing {
        Existing::Skip => return Ok(true),
        Existing::Fail => {
            return Err(CopyError::Refused(format!("not replacing {}", quoted(&entry.target_path()))));
        }
        Existing::Older if target.modified >= source.modified => return Ok(true),
        Existing::Older | Existing::Overwrite => {}
    }
    if !options.interactive {
        return Ok(false);
    }
    Ok(!context.reporter.ask(&format!("overwrite {}?", quoted(&entry.target_path()))))
}

/// Removes a target that is no directory.
pub(crate) fn remove_target(entry: &Entry) -> CopyResult<()> {
    match unlinkat(entry.target_dir(), entry.target, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(CopyError::call(entry.target_path(), "unlink", errno)),
    }
}

/// Opens a file that must not exist.
pub(crate) fn create_new(entry: &Entry, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let made = retry_on_intr(|| openat(entry.target_dir(), entry.target, flags, Mode::from_raw_mode(mode)));
    // The kernel reports EISDIR for each new name that ends with a slash, also where a file has the name.
    made.map_err(|errno| match entry.target.to_bytes() {
        [first @ .., b'/'] if errno == Errno::ISDIR && Path::new(OsStr::from_bytes(first)).is_file() => {
            Errno::NOTDIR
        }
        _ => errno,
    })
}

/// Opens an existing target and truncates it. With `-f` a target that cannot be opened is replaced. Returns the file and
/// whether it is new.
pub(crate) fn open_existing(
    context: &Context,
    entry: &Entry,
    is_link: bool,
    mode: u32,
) -> CopyResult<(OwnedFd, bool)> {
    let truncates = context.options.kind != TargetKind::Attributes;
    let mut flags = OFlags::WRONLY | OFlags::CLOEXEC;
    flags.set(OFlags::TRUNC, truncates);
    flags.set(OFlags::NOFOLLOW, !is_link);
    match retry_on_intr(|| openat(entry.target_dir(), entry.target, flags, Mode::empty())) {
        Ok(file) => Ok((file, false)),
        Err(_) if context.options.force => {
            remove_target(entry)?;
            create_new(entry, mode).on_creation(entry.target_path(), "open").map(|file| (file, true))
        }
        Err(errno) => Err(CopyError::call(entry.target_path(), "open", errno)),
    }
}

/// Returns a path in quotes.
pub(crate) fn quoted(path: &Path) -> String {
    quote(path.as_os_str().as_bytes())
}

/// Returns the path of a file that a symbolic link names, so that a new file can be renamed over it.
pub(crate) fn behind_link(entry: &Entry) -> CopyResult<CString> {
    let path = std::fs::canonicalize(entry.target_path()).on(entry.target_path(), "readlink")?;
    CString::new(OsStr::as_bytes(path.as_os_str())).map_err(std::io::Error::from).on(path, "readlink")
}
