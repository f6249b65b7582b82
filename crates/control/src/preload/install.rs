//! Installs the library and the hooks where no other user can replace them.
//!
//! A folder is named for the hash of its files. Each use compares the files byte by byte. A new file is written
//! under a temporary name and renamed, so parallel starts never see a part of it.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use weir_sys::user_namespace;

use super::checked_directory::CheckedDirectory;

/// No candidate directory is safe and writable. Holds one sentence for each candidate.
#[derive(Debug, thiserror::Error)]
#[error("no directory for the files that are loaded into programs: {}; {}", .0.join("; "), advice())]
pub struct InstallError(Vec<String>);

/// Returns what to do without a directory.
fn advice() -> &'static str {
    match geteuid().is_root() {
        _ if user_namespace::lacks_owner_of_root() => {
            "in a user namespace that has no number for the owner of / (/proc/self/uid_map), no directory can be trusted: run weir \
             outside of it, as in: weir run -- unshare -r COMMAND"
        }
        true => {
            "mount a file system without noexec and with the mode 0755 at /run/weir, or one with the sticky bit at /tmp (docker run \
             --tmpfs /tmp:exec)"
        }
        false => "set XDG_CACHE_HOME to a directory of your own, on a file system without noexec",
    }
}

/// The files of one folder: relative paths and contents.
pub type Files<'a> = &'a [(&'a str, &'a [u8])];

/// Installs files in a folder `NAME-HASH` and returns its path. Files that are there are only compared.
pub fn install(name: &str, files: Files) -> Result<PathBuf, InstallError> {
    let folder = format!("{name}-{:016x}", hash(files));
    let mut refused = Vec::new();
    for candidate in candidates() {
        match fill(&candidate, &folder, files) {
            Ok(path) => return Ok(path),
            Err(why) => refused.push(format!("{}: {why}", candidate.display())),
        }
    }
    Err(InstallError(refused))
}

/// Returns the candidate directories, best first. For root they are readable by children of other users.
fn candidates() -> Vec<PathBuf> {
    let user = geteuid();
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let shared = format!("weir-{}", user.as_raw());
    let mut all: Vec<PathBuf> = Vec::new();
    if user.is_root() {
        all.extend(["/run/weir", "/var/cache/weir"].map(PathBuf::from));
    } else {
        all.extend(variable("XDG_CACHE_HOME").map(|path| path.join("weir")));
        all.extend(variable("HOME").map(|path| path.join(".cache/weir")));
        all.extend(variable("XDG_RUNTIME_DIR").map(|path| path.join("weir")));
    }
    all.extend(["/var/tmp", "/tmp"].map(|path| Path::new(path).join(&shared)));
    all
}

/// Installs the files below a directory. All directories and files are opened relative to the descriptor of a directory that
/// was checked, and the returned path has no symbolic links, so that it names what was checked.
fn fill(directory: &Path, folder: &str, files: Files) -> Result<PathBuf, String> {
    let directory = CheckedDirectory::open(directory)?;
    directory.check_last()?;
    let folder = directory.own_child(folder)?;
    for (name, bytes) in files {
        let (parents, name) = name.rsplit_once('/').unwrap_or(("", name));
        let mut parent = folder.again()?;
        for name in parents.split('/').filter(|name| !name.is_empty()) {
            parent = parent.own_child(name)?;
        }
        if !parent.holds(name, bytes) {
            parent.check_last()?;
            parent.write(name, bytes).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    folder.check_last()?;
    Ok(folder.path)
}

/// Returns a hash of names and contents, by words of eight bytes: each start of a program hashes the library. Only the folder's name
/// depends on it.
fn hash(files: Files) -> u64 {
    let of = |hash: u64, bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let mixed = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
        // The high bits of a product depend on all bits of the word, the low ones do not.
        mixed ^ mixed >> 32
    };
    files
        .iter()
        .fold(0, |hash, (name, bytes)| bytes.chunks(8).fold(name.as_bytes().chunks(8).fold(hash, of), of))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, Permissions};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::fs::Mode;

    use super::*;

    const FILES: Files = &[("lib.so", b"one"), ("deep/er.py", b"two")];

    #[test]
    fn each_byte_changes_the_name_of_the_folder() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut hashes = std::collections::HashSet::from([hash(&[("lib.so", &bytes)])]);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert!(hashes.insert(hash(&[("lib.so", &other)])), "byte {at}");
            }
        }
        assert!(hashes.insert(hash(&[("lib.so", &bytes[..99])])));
        assert!(hashes.insert(hash(&[("lib.sO", &bytes)])));
    }

    #[test]
    fn files_are_installed_once_and_repaired_after_a_change() {
        let Some(dir) = own_folder() else { return };
        let install = || fill(dir.path(), "f", FILES);
        let path = install().unwrap();
        let file = path.join("deep/er.py");
        let inode = |file: &Path| fs::metadata(file).unwrap().ino();
        let first = inode(&file);
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!((install(), inode(&file)), (Ok(path.clone()), first));
        fs::remove_file(&file).unwrap();
        fs::write(&file, b"bad").unwrap();
        assert_eq!(install(), Ok(path));
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o555);
    }

    /// Returns a folder that weir may use; None if the source directory is open to other users.
    fn own_folder() -> Option<tempfile::TempDir> {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        CheckedDirectory::open(dir.path()).is_ok().then_some(dir)
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let Some(dir) = own_folder() else { return };
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        for mode in [0o777, 0o775, 0o1777] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            let refused = fill(&open, "f", FILES);
            assert!(refused.is_err_and(|why| why.contains("others can write")), "{mode:o}");
        }
    }

    #[test]
    fn a_umask_of_root_keeps_no_user_from_the_files() {
        let Some(dir) = own_folder() else { return };
        let (closed, private) = (dir.path().join("closed"), dir.path().join("private"));
        for directory in [&closed, &private] {
            fs::create_dir(directory).unwrap();
            fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap();
        }
        std::os::unix::fs::symlink(&private, dir.path().join("link")).unwrap();
        let fill_with_umask = || {
            // SAFETY: only the umask and the working directory of this thread become its own.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.unwrap();
            rustix::process::umask(Mode::from_raw_mode(0o077));
            ["new/er", "closed", "link"].map(|name| fill(&dir.path().join(name), "f", FILES))
        };
        let filled =
            std::thread::scope(|scope| scope.spawn(fill_with_umask).join().expect("the thread panicked"));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        if !geteuid().is_root() {
            return assert!(filled.iter().all(Result::is_ok), "{filled:?}");
        }
        let [new, old, linked] = filled;
        for path in [new.unwrap(), old.unwrap()] {
            for directory in [path.parent().unwrap(), &path, &path.join("deep")] {
                assert_eq!(mode(directory), 0o755, "{}", directory.display());
            }
            assert_eq!(mode(&path.join("lib.so")), 0o555);
        }
        assert_eq!(mode(&dir.path().join("new")), 0o755);
        // Another directory, to which a link in place of weir's leads, keeps its mode.
        assert!(linked.is_err_and(|why| why.contains("cannot reach")));
        assert_eq!(mode(&private), 0o700);
    }

    #[test]
    fn a_path_that_variables_cannot_name_is_not_used() {
        let Some(dir) = own_folder() else { return };
        for name in [&b"a b"[..], b"a:b", b"a\tb", b"a\nb", b"$LIB", b"a\xff"] {
            let candidate = dir.path().join(OsStr::from_bytes(name)).join("weir");
            let refused = fill(&candidate, "f", FILES);
            assert!(refused.is_err_and(|why| why.contains("a space or a colon")), "{name:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // The files are in the directory to which the link leads.
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a b")).unwrap();
        assert_eq!(fill(&dir.path().join("a b"), "f", FILES), fill(dir.path(), "f", FILES));
        fs::create_dir(dir.path().join("c d")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("c d"), dir.path().join("e")).unwrap();
        assert!(fill(&dir.path().join("e"), "f", FILES).is_err());
    }

    #[test]
    fn the_path_of_the_files_has_no_links() {
        let Some(dir) = own_folder() else { return };
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        // The path was checked where the link leads to, and used through the link, which another user may replace.
        let path = fill(&link.join("new"), "f", FILES).unwrap();
        assert_eq!(path, fs::canonicalize(&real).unwrap().join("new/f"));
        assert_eq!(fs::read(path.join("lib.so")).unwrap(), b"one");
    }

    #[test]
    fn a_link_in_place_of_a_folder_is_not_followed() {
        let Some(dir) = own_folder() else { return };
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        for name in ["f", "g/deep"] {
            let link = dir.path().join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
            let folder = name.split('/').next().unwrap();
            assert!(fill(dir.path(), folder, FILES).is_err(), "{name}");
        }
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_others_can_write_is_not_used() {
        let Some(dir) = own_folder() else { return };
        let folder = CheckedDirectory::open(dir.path()).unwrap();
        let file = dir.path().join("f");
        fs::write(&file, b"x").unwrap();
        for (mode, used) in [(0o644, true), (0o666, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(folder.holds("f", b"x"), used);
        }
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        assert!(!folder.holds("link", b"x"));
    }
}
