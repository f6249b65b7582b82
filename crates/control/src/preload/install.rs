//! Installs the library and the hooks where no other user can replace them.
//!
//! A folder is named for the hash of its files. Each use compares the files byte by byte. A new file is written
//! under a temporary name and renamed, so parallel starts never see a part of it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
const EXECUTE_ALL: u32 = 0o111;

/// No candidate directory is safe and writable. Holds one sentence for each candidate.
#[derive(Debug, thiserror::Error)]
#[error("no directory for the files that are loaded into programs: {}; set XDG_CACHE_HOME to a directory of your own", .0.join("; "))]
pub struct InstallError(Vec<String>);

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
    let user = rustix::process::geteuid();
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

fn fill(directory: &Path, folder: &str, files: Files) -> Result<PathBuf, String> {
    let path = directory.join(folder);
    create_directory(directory).map_err(|error| format!("mkdir: {error}"))?;
    check_owner_and_mode(directory)?;
    for (name, bytes) in files {
        let file = path.join(name);
        if holds(&file, bytes) {
            continue;
        }
        let parent = file.parent().unwrap_or(&path);
        create_directory(parent).map_err(|error| format!("mkdir: {error}"))?;
        check_owner_and_mode(parent)?;
        write(&file, bytes).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(path)
}

fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(directory)
}

/// Fails unless every folder of the path belongs to the user or root and no other user can replace it.
fn check_owner_and_mode(directory: &Path) -> Result<(), String> {
    let real = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let user = rustix::process::geteuid().as_raw();
    for folder in real.ancestors() {
        let metadata = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
        if metadata.uid() != 0 && metadata.uid() != user {
            return Err(format!("{} belongs to another user", folder.display()));
        }
        // A sticky folder protects the folders in it, so only the last folder must not be writable for others.
        let open = metadata.mode() & OTHERS_WRITE != 0;
        if open && (metadata.mode() & STICKY == 0 || folder == real) {
            return Err(format!("others can write into {}", folder.display()));
        }
        if user == 0 && metadata.mode() & EXECUTE_ALL != EXECUTE_ALL {
            return Err(format!("other users' programs cannot reach {}", folder.display()));
        }
    }
    let mount = rustix::fs::statvfs(&real).map_err(|error| error.to_string())?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("it is mounted noexec".into());
    }
    Ok(())
}

/// Tells whether a file exists with these bytes, belongs to the user or root, and is not writable for others.
fn holds(file: &Path, bytes: &[u8]) -> bool {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let Ok(mut open) = OpenOptions::new().read(true).custom_flags(flags).open(file) else { return false };
    let user = rustix::process::geteuid().as_raw();
    let trusted = open.metadata().is_ok_and(|metadata| {
        metadata.is_file()
            && (metadata.uid() == user || metadata.uid() == 0)
            && metadata.mode() & OTHERS_WRITE == 0
            && metadata.len() == bytes.len() as u64
    });
    let mut found = Vec::with_capacity(bytes.len() + 1);
    trusted && open.read_to_end(&mut found).is_ok() && found == bytes
}

fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let _gone = fs::remove_file(&temporary);
    let written = (|| {
        let mut open: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        open.write_all(bytes)?;
        open.set_permissions(Permissions::from_mode(0o555))?;
        fs::rename(&temporary, file)
    })();
    if written.is_err() {
        let _gone = fs::remove_file(&temporary);
    }
    written
}

/// Returns the FNV-1a hash of names and contents. Only the folder's name depends on it.
fn hash(files: Files) -> u64 {
    let of = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    files.iter().fold(0xcbf2_9ce4_8422_2325, |hash, (name, bytes)| {
        bytes.iter().fold(name.as_bytes().iter().fold(hash, of), of)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: Files = &[("lib.so", b"one"), ("deep/er.py", b"two")];

    #[test]
    fn files_are_installed_once_and_repaired_after_a_change() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let install = || fill(dir.path(), "f", FILES);
        let path = match install() {
            Ok(path) => path,
            // The source directory may be writable for other users.
            Err(why) => return assert!(why.contains("others") || why.contains("another"), "{why}"),
        };
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

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        for mode in [0o777, 0o775, 0o1777] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert!(check_owner_and_mode(&open).is_err(), "{mode:o}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, b"x").unwrap();
        for (mode, used) in [(0o644, true), (0o666, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(holds(&file, b"x"), used);
        }
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        assert!(!holds(&dir.path().join("link"), b"x"));
    }
}
