//! Puts what is loaded into programs where nobody else can replace it, once, and finds it there again.
//!
//! A file is named for what is in it. It is compared with what it must hold before each use, and made under
//! another name and renamed, so that parallel starts do not see half of it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// Who else may write.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
const EXECUTE_ALL: u32 = 0o111;

/// Nothing could be put anywhere.
#[derive(Debug, thiserror::Error)]
#[error("no directory for what is loaded into programs: {}; set XDG_CACHE_HOME to one that is yours alone", .0.join("; "))]
pub struct InstallError(Vec<String>);

/// Files that belong together, by their paths in a folder of their own.
pub type Files<'a> = &'a [(&'a str, &'a [u8])];

/// Puts files below a folder `NAME-HASH` and gives its path. At most, they are read and compared.
pub fn place(name: &str, files: Files) -> Result<PathBuf, InstallError> {
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

/// Where it may lie, the best first: for root where children of other users can read it.
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
    make(directory).map_err(|error| format!("mkdir: {error}"))?;
    safe(directory)?;
    for (name, bytes) in files {
        let file = path.join(name);
        if holds(&file, bytes) {
            continue;
        }
        let parent = file.parent().unwrap_or(&path);
        make(parent).map_err(|error| format!("mkdir: {error}"))?;
        safe(parent)?;
        write(&file, bytes).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(path)
}

fn make(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(directory)
}

/// Every folder of the path belongs to the user or root, and nobody else can put something into its place.
fn safe(directory: &Path) -> Result<(), String> {
    let real = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let user = rustix::process::geteuid().as_raw();
    for folder in real.ancestors() {
        let about = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
        if about.uid() != 0 && about.uid() != user {
            return Err(format!("{} belongs to another user", folder.display()));
        }
        // In a sticky folder nobody can rename what belongs to another; the last one must be closed.
        let open = about.mode() & OTHERS_WRITE != 0;
        if open && (about.mode() & STICKY == 0 || folder == real) {
            return Err(format!("others can write into {}", folder.display()));
        }
        if user == 0 && about.mode() & EXECUTE_ALL != EXECUTE_ALL {
            return Err(format!("other users' programs cannot reach {}", folder.display()));
        }
    }
    let mount = rustix::fs::statvfs(&real).map_err(|error| error.to_string())?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("it is mounted noexec".into());
    }
    Ok(())
}

/// Whether it is there already, ours or root's, closed to others and with the right bytes.
fn holds(file: &Path, bytes: &[u8]) -> bool {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let Ok(mut open) = OpenOptions::new().read(true).custom_flags(flags).open(file) else { return false };
    let user = rustix::process::geteuid().as_raw();
    let right = open.metadata().is_ok_and(|about| {
        about.is_file()
            && (about.uid() == user || about.uid() == 0)
            && about.mode() & OTHERS_WRITE == 0
            && about.len() == bytes.len() as u64
    });
    let mut found = Vec::with_capacity(bytes.len() + 1);
    right && open.read_to_end(&mut found).is_ok() && found == bytes
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

/// FNV-1a: only a name is made of it; what is in a file is compared byte by byte.
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
    fn it_is_put_there_once_and_mended_when_it_was_changed() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let place = || fill(dir.path(), "f", FILES);
        let path = match place() {
            Ok(path) => path,
            // The sources may lie where other users write.
            Err(why) => return assert!(why.contains("others") || why.contains("another"), "{why}"),
        };
        let file = path.join("deep/er.py");
        let inode = |file: &Path| fs::metadata(file).unwrap().ino();
        let first = inode(&file);
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!((place(), inode(&file)), (Ok(path.clone()), first));
        fs::remove_file(&file).unwrap();
        fs::write(&file, b"bad").unwrap();
        assert_eq!(place(), Ok(path));
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o555);
    }

    #[test]
    fn a_folder_that_others_can_write_into_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        for mode in [0o777, 0o775, 0o1777] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert!(safe(&open).is_err(), "{mode:o}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_to_is_not_used() {
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
