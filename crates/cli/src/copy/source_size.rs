//! Size of the sources, as far as it is known before they are copied.

use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use weir_sys::file_system::is_terminal;

/// The size of the sources together.
pub enum SourceSize {
    /// Files and directories, which can be counted.
    Countable,
    /// One block device, or a file as standard input.
    Bytes(u64),
    /// At least one source is a stream.
    Unknown,
}

impl SourceSize {
    /// Determines the size. A source whose stat(2) fails makes it unknown; the copy reports the error.
    pub fn of(sources: &[PathBuf]) -> Self {
        if let [source] = sources
            && let Some(bytes) = device_or_input_bytes(source)
        {
            return Self::Bytes(bytes);
        }
        let is_countable = |source: &PathBuf| {
            let about = std::fs::metadata(source);
            source.as_os_str() != "-" && about.is_ok_and(|about| about.is_file() || about.is_dir())
        };
        if sources.iter().all(is_countable) { Self::Countable } else { Self::Unknown }
    }
}

/// Returns the bytes of a block device, or those of standard input from its offset on, if it is a file.
fn device_or_input_bytes(source: &Path) -> Option<u64> {
    if source.as_os_str() == "-" {
        let mut input = File::from(stdin().as_fd().try_clone_to_owned().ok()?);
        let about = input.metadata().ok().filter(Metadata::is_file)?;
        return Some(about.size().saturating_sub(input.stream_position().ok()?));
    }
    let about = std::fs::metadata(source).ok()?;
    if !about.file_type().is_block_device() {
        return None;
    }
    File::open(source).ok()?.seek(SeekFrom::End(0)).ok()
}

/// Returns whether a user types the source: a bar would overwrite the text.
pub fn reads_terminal(sources: &[PathBuf]) -> bool {
    /// Consoles and /dev/tty (4, 5) and pseudo terminals (136 to 143), see Documentation/admin-guide/devices.txt.
    const TERMINALS: [u32; 10] = [4, 5, 136, 137, 138, 139, 140, 141, 142, 143];
    sources.iter().any(|source| match source.as_os_str() == "-" {
        true => is_terminal(stdin()),
        false => std::fs::metadata(source).is_ok_and(|about| {
            about.file_type().is_char_device() && TERMINALS.contains(&rustix::fs::major(about.rdev()))
        }),
    })
}
