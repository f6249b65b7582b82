//! Saves rescued bytes that their file did not take, with a report beside them. Both files belong to the user of the dead
//! process, and no other user but root can read them.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_model::run::{RescuedBytes, SavedFile};
use weir_model::trace::Exit;
use weir_sys::writer_identity::WriterIdentity;

use crate::supervise::Tracees;

/// User and group ID of the owner of saved files.
pub(crate) type Owner = (u32, u32);

/// Returns the owner of the bytes of a thread; None if it is gone.
pub(crate) fn owner_of(tid: u32) -> Option<Owner> {
    WriterIdentity::of(tid).map(|identity| (identity.user_ids[1], identity.group_ids[1]))
}

/// The service of a rescue, as a participle for a sentence.
pub(crate) const RESCUED: &str = "rescued";

/// Returns whether a process ended by SIGPIPE and its pipe still has no reader: then no reader misses the bytes.
pub(crate) fn has_no_reader(exit: Exit, error: &io::Error) -> bool {
    exit == Exit::Signal(libc::SIGPIPE) && error.raw_os_error() == Some(libc::EPIPE)
}

/// Saves `bytes` in a file and notes it in `rescued`. Reports bytes that cannot be saved as a limitation: they do not count as rescued.
pub(crate) fn save_or_report(
    tracees: &mut Tracees,
    rescued: &mut RescuedBytes,
    owner: Option<Owner>,
    bytes: &[u8],
    why: String,
) {
    match save(tracees.save_in.as_deref(), bytes, owner, rescued, &why) {
        Ok(path) => rescued.saved = Some(SavedFile { path: path.to_string_lossy().into_owned(), why }),
        Err(error) => {
            rescued.bytes = rescued.bytes.saturating_sub(bytes.len() as u64);
            tracees.add_limitation(format!(
                "{} bytes of process {} ({}) for {} are lost: {why}; and they could not be saved: {}",
                bytes.len(),
                rescued.pid,
                rescued.comm,
                rescued.path,
                weir_sys::error::errno_text(&error)
            ));
        }
    }
}

/// Saves bytes and a report in `folder`, or else in the current directory or that for temporary files.
fn save(
    folder: Option<&Path>,
    bytes: &[u8],
    owner: Option<Owner>,
    rescued: &RescuedBytes,
    why: &str,
) -> io::Result<PathBuf> {
    let folders = match folder {
        Some(folder) => vec![folder.to_path_buf()],
        None => vec![PathBuf::from("."), std::env::temp_dir()],
    };
    let mut failed = io::Error::from_raw_os_error(libc::ENOENT);
    // A folder whose server does not answer would keep the bytes from the next one.
    for folder in folders.into_iter().filter(|folder| weir_sys::file_system::is_usable(folder)) {
        match save_in(&folder, bytes, owner, rescued, why) {
            Ok(path) => return Ok(path),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn save_in(
    folder: &Path,
    bytes: &[u8],
    owner: Option<Owner>,
    rescued: &RescuedBytes,
    why: &str,
) -> io::Result<PathBuf> {
    let (path, file, report) = create_unique(folder, rescued)?;
    let written = write_both((file, report), bytes, owner, rescued, why);
    if written.is_err() {
        // A part of the bytes would look like all of them. The next folder may have more room.
        let _removed = [&path, &path.with_extension("bin.txt")].map(std::fs::remove_file);
    }
    written.map(|()| path)
}

fn write_both(
    (mut file, mut report): (File, File),
    bytes: &[u8],
    owner: Option<Owner>,
    rescued: &RescuedBytes,
    why: &str,
) -> io::Result<()> {
    file.write_all(bytes)?;
    let text = format!(
        "{} that process {} ({}) had not written when it ended ({}).\n\
         To be written to its descriptor {}, {}, where weir did not write: {why}.\n",
        match bytes.len() {
            1 => "1 byte".to_string(),
            count => format!("{count} bytes"),
        },
        rescued.pid,
        rescued.comm,
        rescued.exit,
        rescued.fd,
        rescued.path
    );
    report.write_all(text.as_bytes())?;
    // Last: the owner must not change what weir still writes.
    for file in [&file, &report] {
        give_to(file, owner)?;
    }
    Ok(())
}

/// Gives a file to the owner of its bytes. Only root can; otherwise the owner is weir's own user.
fn give_to(file: &File, owner: Option<Owner>) -> io::Result<()> {
    match owner.filter(|_| rustix::process::geteuid().is_root()) {
        Some((user, group)) => std::os::unix::fs::fchown(file, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// Creates weir-rescue-PID-FD.bin and its report, or weir-rescue-PID-FD-N.bin for another stream of the same descriptor. In a
/// directory that others can write to N is random: they could take every name that they can predict.
fn create_unique(folder: &Path, rescued: &RescuedBytes) -> io::Result<(PathBuf, File, File)> {
    let name = format!("weir-rescue-{}-{}", rescued.pid, rescued.fd);
    let is_shared = is_writable_by_others(folder)?;
    for number in 1..100 {
        let number = match number {
            _ if is_shared => format!("-{:016x}", RandomState::new().hash_one(number)),
            1 => String::new(),
            number => format!("-{number}"),
        };
        let path = folder.join(format!("{name}{number}.bin"));
        let created = create_private(&path).and_then(|file| {
            let report = create_private(&path.with_extension("bin.txt"));
            // Another user may have taken the name of the report only.
            report.inspect_err(|_| drop(std::fs::remove_file(&path))).map(|report| (file, report))
        });
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|(file, report)| (path, file, report)),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

/// Returns whether another user but root can create files in a directory.
fn is_writable_by_others(folder: &Path) -> io::Result<bool> {
    const GROUP_AND_OTHERS: u32 = 0o022;
    let about = std::fs::metadata(folder)?;
    let owners = [0, rustix::process::geteuid().as_raw()];
    Ok(about.mode() & GROUP_AND_OTHERS != 0 || !owners.contains(&about.uid()))
}

/// Creates a file that only the user can read, because the bytes may be secret. Never opens one that exists, nor a symbolic
/// link (O_EXCL).
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn rescued() -> RescuedBytes {
        let (comm, path) = ("victim".into(), "/full".into());
        RescuedBytes { pid: 7, comm, fd: 3, path, bytes: 5, exit: Exit::Signal(9), saved: None }
    }

    #[test]
    fn others_can_take_no_name_in_a_shared_directory() {
        let (shared, secret) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        // Every name of a private directory, as links to a file of the user of weir.
        for number in std::iter::once(String::new()).chain((2..100).map(|number| format!("-{number}"))) {
            symlink(secret.path(), shared.path().join(format!("weir-rescue-7-3{number}.bin"))).unwrap();
        }
        let paths: Vec<PathBuf> = (0..2)
            .map(|_| save_in(shared.path(), b"bytes", None, &rescued(), "ENOSPC").expect("a free name"))
            .collect();
        assert_ne!(paths[0], paths[1]);
        for path in paths {
            let about = std::fs::symlink_metadata(&path).unwrap();
            assert_eq!((about.is_file(), about.mode() & 0o777), (true, 0o600), "{path:?}");
            assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
            assert!(path.with_extension("bin.txt").exists());
        }
        assert_eq!(std::fs::read(secret.path()).unwrap(), b"", "no link was followed");
    }

    #[test]
    fn names_in_a_private_directory_are_numbered() {
        let dir = tempfile::tempdir().unwrap();
        let name = || save_in(dir.path(), b"bytes", None, &rescued(), "ENOSPC").unwrap();
        assert_eq!(
            [name(), name()],
            ["weir-rescue-7-3.bin", "weir-rescue-7-3-2.bin"].map(|name| dir.path().join(name))
        );
    }
}
