//! The file that a command's name means.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Where execvp(3) looks without PATH.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// As execvp(3) finds it: along PATH, what this user may execute; with a slash in it, the file itself, executable or
/// not: the call then says why.
pub fn find(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    along(name.as_ref(), std::env::var_os("PATH"))
}

fn along(name: &OsStr, folders: Option<OsString>) -> Option<PathBuf> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = folders.unwrap_or_else(|| WITHOUT_PATH.into());
    let executable = |path: &PathBuf| path.is_file() && access(Path::new(path), Access::EXEC_OK).is_ok();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(executable)
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
    fn the_first_that_can_be_executed_is_meant() {
        let dir = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| dir.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        // Neither a directory of its name nor a file that nobody may execute is it.
        fs::create_dir(folders[0].join("tool")).unwrap();
        let plain = file(folders[1].join("tool"), 0o644);
        let wanted = file(folders[2].join("tool"), 0o755);
        let path = || Some(std::env::join_paths(&folders).unwrap());
        assert_eq!(along("tool".as_ref(), path()), Some(wanted));
        assert_eq!(along("none".as_ref(), path()), None);
        assert_eq!(along("".as_ref(), path()), None);
        // With a slash there is no search; that it cannot be executed is for execve to say.
        assert_eq!(along(plain.as_os_str(), path()), Some(plain.clone()));
        assert_eq!(along(folders[0].as_os_str(), path()), None);
    }

    #[test]
    fn without_path_it_is_looked_for_where_execvp_does() {
        assert!(along("sh".as_ref(), None).is_some());
        assert_eq!(along("sh".as_ref(), Some("/nowhere".into())), None);
    }
}
