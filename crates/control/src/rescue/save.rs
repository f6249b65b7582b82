//! Saves rescued bytes that their file did not take, with a report beside them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use weir_model::run::{RescuedBytes, SavedFile};

use crate::supervise::Tracees;

/// Saves `bytes` in a file and notes it in `rescued`. Reports bytes that cannot be saved as a limitation.
pub(crate) fn save_or_report(tracees: &mut Tracees, rescued: &mut RescuedBytes, bytes: &[u8], why: String) {
    match save(tracees.save_in.as_deref(), bytes, rescued, &why) {
        Ok(path) => rescued.saved = Some(SavedFile { path: path.to_string_lossy().into_owned(), why }),
        Err(error) => tracees.add_limitation(format!(
            "{} bytes of process {} ({}) for {} are lost: {why}; and they could not be saved: {}",
            bytes.len(),
            rescued.pid,
            rescued.comm,
            rescued.path,
            weir_sys::error::errno_text(&error)
        )),
    }
}

/// Saves bytes and a report in `folder`, or else in the current directory or that for temporary files.
fn save(folder: Option<&Path>, bytes: &[u8], rescued: &RescuedBytes, why: &str) -> io::Result<PathBuf> {
    let folders = match folder {
        Some(folder) => vec![folder.to_path_buf()],
        None => vec![PathBuf::from("."), std::env::temp_dir()],
    };
    let mut failed = io::Error::from_raw_os_error(libc::ENOENT);
    for folder in folders {
        match save_in(&folder, bytes, rescued, why) {
            Ok(path) => return Ok(path),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn save_in(folder: &Path, bytes: &[u8], rescued: &RescuedBytes, why: &str) -> io::Result<PathBuf> {
    let (path, mut file) = create_unique(folder, rescued)?;
    file.write_all(bytes)?;
    let report = path.with_extension("bin.txt");
    let text = format!(
        "{} bytes that process {} ({}) had not written when it ended ({:?}).\n\
         They belong to its descriptor {}, {}, which did not take them: {why}.\n",
        bytes.len(),
        rescued.pid,
        rescued.comm,
        rescued.exit,
        rescued.fd,
        rescued.path
    );
    create_private(&report)?.write_all(text.as_bytes())?;
    Ok(path)
}

/// Creates weir-rescue-PID-FD.bin, or weir-rescue-PID-FD-N.bin for another stream of the same descriptor.
fn create_unique(folder: &Path, rescued: &RescuedBytes) -> io::Result<(PathBuf, File)> {
    let name = format!("weir-rescue-{}-{}", rescued.pid, rescued.fd);
    for number in 1..100 {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}{number}.bin"));
        match create_private(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (path, file)),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

/// Creates a file that only the user can read, because the bytes may be secret.
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
