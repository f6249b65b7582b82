//! Bytes that nobody takes any more, saved in a file beside a report.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::RescuedBytes;

/// Saves `bytes` as weir-rescue-PID-FD.bin, in `folder` or else in the current directory or that for temporary
/// files, and what they are beside it.
pub(crate) fn save(
    folder: Option<&Path>,
    bytes: &[u8],
    about: &RescuedBytes,
    why: &str,
) -> io::Result<PathBuf> {
    let folders = match folder {
        Some(folder) => vec![folder.to_path_buf()],
        None => vec![PathBuf::from("."), std::env::temp_dir()],
    };
    let mut failed = io::Error::from_raw_os_error(libc::ENOENT);
    for folder in folders {
        match save_in(&folder, bytes, about, why) {
            Ok(path) => return Ok(path),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn save_in(folder: &Path, bytes: &[u8], about: &RescuedBytes, why: &str) -> io::Result<PathBuf> {
    let (path, mut file) = new_file(folder, about)?;
    file.write_all(bytes)?;
    let report = path.with_extension("bin.txt");
    let text = format!(
        "{} bytes that process {} ({}) had not written when it ended ({:?}).\n\
         They were meant for its descriptor {}, {}, which did not take them: {why}.\n",
        bytes.len(),
        about.pid,
        about.comm,
        about.exit,
        about.fd,
        about.path
    );
    created(&report)?.write_all(text.as_bytes())?;
    Ok(path)
}

/// A second stream of the same descriptor gets a number.
fn new_file(folder: &Path, about: &RescuedBytes) -> io::Result<(PathBuf, File)> {
    let name = format!("weir-rescue-{}-{}", about.pid, about.fd);
    for number in 1..100 {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}{number}.bin"));
        match created(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

/// Only the user may read it: nobody knows what the bytes are.
fn created(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
