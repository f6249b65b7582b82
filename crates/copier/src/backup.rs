//! Names of backups: `NAME~`, `NAME.~1~`.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags, RenameFlags, openat, renameat, renameat_with};
use rustix::io::Errno;

use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::options::{BackupNames, CopyOptions};
use crate::target::quoted;

/// Renames an existing target to its backup. Returns the backup's name.
pub(crate) fn make_backup(entry: &Entry, options: &CopyOptions, names: BackupNames) -> CopyResult<CString> {
    let backup = backup_name(entry, options, names)?;
    let dir = entry.target_dir();
    let is_simple = backup.to_bytes() == simple(entry, options);
    let renamed = match renameat_with(dir, entry.target, dir, &backup, RenameFlags::NOREPLACE) {
        // A simple name replaces the backup before; some file systems cannot rename without replacing.
        Err(Errno::EXIST) if is_simple => renameat(dir, entry.target, dir, &backup),
        Err(Errno::INVAL | Errno::NOSYS) => renameat(dir, entry.target, dir, &backup),
        renamed => renamed,
    };
    renamed.on(entry.target_path(), "rename")?;
    Ok(backup)
}

fn simple(entry: &Entry, options: &CopyOptions) -> Vec<u8> {
    [entry.target.to_bytes(), options.backup_suffix.as_bytes()].concat()
}

/// Returns the name that a backup of the target gets.
pub(crate) fn backup_name(entry: &Entry, options: &CopyOptions, names: BackupNames) -> CopyResult<CString> {
    let name = entry.target.to_bytes();
    let next = |highest: u64| {
        let number = highest.checked_add(1).ok_or_else(|| no_number_left(entry, highest))?;
        Ok(numbered(name, number))
    };
    let bytes = match names {
        BackupNames::Simple => simple(entry, options),
        BackupNames::Numbered => next(highest_number(entry)?)?,
        BackupNames::Existing => match highest_number(entry)? {
            0 => simple(entry, options),
            number => next(number)?,
        },
    };
    CString::new(bytes).map_err(std::io::Error::from).on(entry.target_path(), "backup")
}

fn no_number_left(entry: &Entry, highest: u64) -> CopyError {
    CopyError::Refused(format!(
        "{}: a backup has the highest number, {highest}, and no other can follow: rename that backup",
        quoted(&entry.target_path())
    ))
}

fn numbered(name: &[u8], number: u64) -> Vec<u8> {
    [name, format!(".~{number}~").as_bytes()].concat()
}

/// Returns the highest number of a backup of the target; 0 if there is none.
fn highest_number(entry: &Entry) -> CopyResult<u64> {
    let path = Path::new(OsStr::from_bytes(entry.target.to_bytes()));
    let (folder, name) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => (folder, name),
        (_, Some(name)) => (Path::new("."), name),
        _ => return Ok(0),
    };
    let base = if entry.is_operand() { CWD } else { entry.target_dir() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(base, folder, flags, Mode::empty()).on(entry.target_path(), "open")?;
    let mut highest = 0;
    for item in Dir::read_from(folder).on(entry.target_path(), "getdents")? {
        let item = item.on(entry.target_path(), "getdents")?;
        let number = item.file_name().to_bytes().strip_prefix(name.as_bytes()).and_then(number_of);
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

/// Returns N of `.~N~`.
fn number_of(rest: &[u8]) -> Option<u64> {
    let digits = rest.strip_prefix(b".~")?.strip_suffix(b"~")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_backups_are_parsed() {
        assert_eq!(number_of(b".~12~"), Some(12));
        assert_eq!((number_of(b"~"), number_of(b".~x~"), number_of(b".~1~~")), (None, None, None));
        assert_eq!(numbered(b"a", 3), b"a.~3~");
    }
}
