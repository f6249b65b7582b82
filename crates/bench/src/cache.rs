//! Makes a file warm or cold in the page cache, and verifies the result.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::axes::CacheState;
use crate::error::{Error, Result};
use crate::ffi::cached_share;

/// Makes the first `bytes` of `path` warm or cold. Returns the share that is then cached, 0 to 1.
pub fn prepare(path: &Path, bytes: u64, state: CacheState) -> Result<f64> {
    let file = File::open(path).map_err(|error| Error::system("open", path, &error, ""))?;
    match state {
        CacheState::Warm => warm(&file, bytes),
        CacheState::Cold => cold(&file, bytes),
    }
    .map_err(|error| Error::system("cachestat", path, &error, ""))
}

/// Returns how many of the first `bytes` of `path` are cached, in bytes.
pub fn cached_bytes(path: &Path, bytes: u64) -> Result<u64> {
    let share = File::open(path).and_then(|file| cached_share(&file, bytes));
    let share = share.map_err(|error| Error::system("cachestat", path, &error, ""))?;
    Ok((share * bytes as f64) as u64)
}

fn warm(mut file: &File, bytes: u64) -> std::io::Result<f64> {
    let share = cached_share(file, bytes)?;
    if share >= 1.0 {
        return Ok(share);
    }
    std::io::copy(&mut Read::by_ref(&mut file).take(bytes), &mut std::io::sink())?;
    cached_share(file, bytes)
}

/// Drops the pages of the file; returns the share that is still cached. POSIX_FADV_DONTNEED drops only clean pages, so
/// the file is synced first. Pages that other mappings or per-CPU batches hold need drop_caches, which needs root.
fn cold(file: &File, bytes: u64) -> std::io::Result<f64> {
    file.sync_all()?;
    fadvise(file, 0, None, Advice::DontNeed)?;
    let share = cached_share(file, bytes)?;
    if share == 0.0 || !drop_caches() {
        return Ok(share);
    }
    fadvise(file, 0, None, Advice::DontNeed)?;
    cached_share(file, bytes)
}

/// Writes 1 to /proc/sys/vm/drop_caches. Returns false without the permission.
fn drop_caches() -> bool {
    fs::OpenOptions::new()
        .write(true)
        .open("/proc/sys/vm/drop_caches")
        .and_then(|mut file| file.write_all(b"1"))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_means_all_pages_and_cold_none_on_a_disk() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 3 << 20]).unwrap();
        assert_eq!(prepare(&path, 3 << 20, CacheState::Warm).unwrap(), 1.0);
        let share = prepare(&path, 3 << 20, CacheState::Cold).unwrap();
        // A source tree on tmpfs, or on overlay over tmpfs, cannot be cold; the share is then 1.
        assert!(share == 0.0 || share == 1.0, "{share}");
        assert_eq!(prepare(&path, 3 << 20, CacheState::Warm).unwrap(), 1.0);
    }
}
