//! Finds the executable file of a command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, access};
use rustix::io::Errno;

/// The directories that execvp(3) searches without PATH.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Returns the file that execvp(3) would execute: the first one in PATH that this user may execute. A name with a slash
/// is the path of the file, executable or not; execve(2) then reports the error. Returns None if there is no such file.
pub fn find(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    find_in(name.as_ref(), std::env::var_os("PATH"))
}

fn find_in(name: &OsStr, directories: Option<OsString>) -> Option<PathBuf> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let directories = directories.unwrap_or_else(|| WITHOUT_PATH.into());
    let executable = |path: &PathBuf| path.is_file() && access(Path::new(path), Access::EXEC_OK).is_ok();
    std::env::split_paths(&directories).map(|directory| directory.join(name)).find(executable)
}

/// Returns the error of an execvp(3) of this name; None if [`find`] finds a file that this user may execute. As execvp(3),
/// a search of PATH fails with EACCES if that was the error of an entry, and otherwise with ENOENT.
pub fn exec_error(name: impl AsRef<OsStr>) -> Option<io::Error> {
    exec_error_in(name.as_ref(), std::env::var_os("PATH"))
}

fn exec_error_in(name: &OsStr, directories: Option<OsString>) -> Option<io::Error> {
    if name.is_empty() {
        return Some(Errno::NOENT.into());
    }
    if name.as_bytes().contains(&b'/') {
        return file_error(Path::new(name)).map(Into::into);
    }
    let directories = directories.unwrap_or_else(|| WITHOUT_PATH.into());
    let mut error = Errno::NOENT;
    for directory in std::env::split_paths(&directories) {
        match file_error(&directory.join(name)) {
            None => return None,
            Some(Errno::ACCESS) => error = Errno::ACCESS,
            Some(Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::NODEV | Errno::TIMEDOUT) => {}
            Some(other) => return Some(other.into()),
        }
    }
    Some(error.into())
}

/// Returns the error of an execve(2) of this path, as far as the path determines it: a directory is not executable.
fn file_error(path: &Path) -> Option<Errno> {
    match rustix::fs::stat(path) {
        Err(error) => Some(error),
        Ok(stat) if !FileType::from_raw_mode(stat.st_mode).is_file() => Some(Errno::ACCESS),
        Ok(_) => access(path, Access::EXEC_OK).err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: PathBuf, mode: u32) -> PathBuf {
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_first_executable_file_of_path_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let directories = ["a", "b", "c"].map(|name| dir.path().join(name));
        directories.iter().for_each(|directory| fs::create_dir(directory).unwrap());
        // A directory of this name and a file without execute permission are skipped.
        fs::create_dir(directories[0].join("tool")).unwrap();
        let plain = file(directories[1].join("tool"), 0o644);
        let wanted = file(directories[2].join("tool"), 0o755);
        let path = || Some(std::env::join_paths(&directories).unwrap());
        assert_eq!(find_in("tool".as_ref(), path()), Some(wanted));
        assert_eq!(find_in("none".as_ref(), path()), None);
        assert_eq!(find_in("".as_ref(), path()), None);
        let errno = |name: &OsStr, path| exec_error_in(name, path).and_then(|error| error.raw_os_error());
        assert_eq!(errno("tool".as_ref(), path()), None);
        assert_eq!(errno("none".as_ref(), path()), Some(libc::ENOENT));
        let refused = Some(directories[0].clone().into());
        assert_eq!(errno("tool".as_ref(), refused), Some(libc::EACCES));
        assert_eq!(errno(directories[0].as_os_str(), None), Some(libc::EACCES));
        assert_eq!(errno(plain.as_os_str(), None), Some(libc::EACCES));
        assert_eq!(errno(plain.join("x").as_os_str(), None), Some(libc::ENOTDIR));
        assert_eq!(errno("".as_ref(), path()), Some(libc::ENOENT));
        // With a slash there is no search; execve(2) reports that the file is not executable.
        assert_eq!(find_in(plain.as_os_str(), path()), Some(plain.clone()));
        assert_eq!(find_in(directories[0].as_os_str(), path()), None);
    }

    #[test]
    fn without_path_the_default_directories_are_searched() {
        assert!(find_in("sh".as_ref(), None).is_some());
        assert_eq!(find_in("sh".as_ref(), Some("/nowhere".into())), None);
    }
}
