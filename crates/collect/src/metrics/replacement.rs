//! Replaces a file by rename(2), as weir_open_replace(3) does, but without syncs: metrics are of no use after a power cut, and a
//! sync would stop the collector.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown};

/// Replaces `path` by a file with this text. Symbolic links stay. The new file has the permissions of the old one, and its
/// owner if permitted; until then only this user may open it.
///
/// # Errors
/// The directory cannot be written, or something else than a file is at the path.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let old = match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Ok(old) if !old.is_file() => return Err(io::ErrorKind::InvalidInput.into()),
        found => Some(found?),
    };
    let (mut file, temporary) = create_temporary(&path, if old.is_some() { 0o600 } else { 0o666 })?;
    let written = old
        .map_or(Ok(()), |old| copy_attributes(&file, &old))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Creates DIRECTORY/.NAME.weir-PID-N.
fn create_temporary(path: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    for number in 0..100 {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        name.push(format!(".weir-{}-{number}", std::process::id()));
        let temporary = path.with_file_name(name);
        let mut options = File::options();
        options.write(true).create_new(true).mode(mode).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        match options.open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((created?, temporary)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn copy_attributes(file: &File, old: &Metadata) -> io::Result<()> {
    let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    let mut mode = old.mode() & 0o7777;
    if fchown(file, Some(owner), Some(group)).is_err() && fchown(file, None, Some(group)).is_err() {
        mode &= !0o6000; // no set-user-ID rights of another owner
    }
    Ok(fchmod(file, Mode::from_raw_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn replace_by_libweir(path: &Path, text: &str) -> io::Result<()> {
        let mut out = libweir::Options::new().open_replace(path)?;
        out.write_all(text.as_bytes())?;
        out.replace()
    }

    /// Replaces a file that has this mode, or none, and returns the mode of the new one, the owner, the names in the directory
    /// and the number of links among them.
    fn replaced(
        replace: impl Fn(&Path, &str) -> io::Result<()>,
        old: Option<u32>,
        behind_link: bool,
    ) -> (Result<u32, io::ErrorKind>, u32, Vec<String>, usize) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        if let Some(mode) = old {
            std::fs::write(&path, "old").expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("changed");
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(&path, Some(1), Some(2)).expect("changed");
                std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("changed");
            }
        }
        let link = dir.path().join("link");
        symlink("file", &link).expect("a link");
        let result = replace(if behind_link && old.is_some() { &link } else { &path }, "new");
        let mode = result.map_err(|error| error.kind()).map(|()| {
            assert_eq!(std::fs::read_to_string(&path).expect("read"), "new");
            path.metadata().expect("its mode").mode()
        });
        let entries: Vec<_> = dir.path().read_dir().expect("read").flatten().collect();
        let links = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let links = links.count();
        let mut names: Vec<_> =
            entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        (mode, path.metadata().expect("its owner").uid(), names, links)
    }

    #[test]
    fn a_replacement_is_the_same_as_by_libweir() {
        for old in [None, Some(0o600), Some(0o640), Some(0o666), Some(0o4755), Some(0o400)] {
            for behind_link in [false, true] {
                let own = replaced(replace, old, behind_link);
                assert_eq!(own, replaced(replace_by_libweir, old, behind_link), "{old:?} {behind_link}");
                assert_eq!(own.2, ["file", "link"], "no other file is left");
                if let Some(mode) = old {
                    assert_eq!(own.0.expect("replaced") & 0o7777, mode);
                }
            }
        }
        let dir = tempfile::tempdir().expect("a directory");
        let failed = [replace(dir.path(), "new"), replace_by_libweir(dir.path(), "new")];
        assert!(failed.into_iter().all(|result| result.is_err()), "a directory is no file");
    }

    #[test]
    fn nobody_else_can_open_the_new_file_of_a_private_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, _) = create_temporary(&dir.path().join("file"), 0o600).expect("created");
        assert_eq!(file.metadata().expect("its mode").mode() & 0o777, 0o600);
    }
}
