//! Finds out how much a tree has, for the time left in a progress bar.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::control::CopyControl;

/// Returns the bytes of all regular files in the sources. Returns None after a stop request. Files that cannot be read count
/// nothing: the copy reports them.
pub fn estimate_bytes(sources: &[PathBuf], control: &CopyControl) -> Option<u64> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut bytes = 0;
    for source in sources {
        bytes += count(source, &mut folders, true);
    }
    while let Some(folder) = folders.pop() {
        if control.is_stopping() {
            return None;
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            bytes += count(&entry.path(), &mut folders, false);
        }
    }
    Some(bytes)
}

/// Returns the bytes of a file, or adds a directory to the list.
fn count(path: &Path, folders: &mut Vec<PathBuf>, follow: bool) -> u64 {
    let metadata = if follow { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    match metadata {
        Ok(metadata) if metadata.is_dir() => {
            folders.push(path.into());
            0
        }
        Ok(metadata) if metadata.is_file() => metadata.size(),
        _ => 0,
    }
}
