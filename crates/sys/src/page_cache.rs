//! Writeback of a part of a file, and what of a file is in the page cache.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// cachestat(2), Linux 6.5; the number is the same on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

/// The pages of a part of a file, by cachestat(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CachedPages {
    pub cached: u64,
    pub dirty: u64,
    /// Pages on their way to the device.
    pub writeback: u64,
    pub evicted: u64,
    pub recently_evicted: u64,
}

/// Returns the pages of `bytes` from `offset` that are in the page cache; 0 bytes mean up to the end. Fails with ENOSYS
/// before Linux 6.5.
pub fn cached_pages(file: impl AsFd, offset: u64, bytes: u64) -> io::Result<CachedPages> {
    let range = [offset, bytes];
    let mut pages = CachedPages::default();
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the kernel reads two words and fills the five words of `CachedPages`, which live until it returns.
    let failed = unsafe { libc::syscall(SYS_CACHESTAT, fd, range.as_ptr(), &mut pages, 0) } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(pages) }
}

/// Returns the bytes of all files of the machine that are not on their devices yet (`Dirty` and `Writeback` of
/// /proc/meminfo). None without procfs.
pub fn dirty_bytes_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((field("Dirty")? + field("Writeback")?) << 10)
}

/// Starts to write the dirty pages of a part of a file to the device, and does not wait for it.
pub fn start_writeback(file: impl AsFd, offset: u64, bytes: u64) -> io::Result<()> {
    sync_file_range(file.as_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
}

/// Writes the dirty pages of a part of a file to the device and waits for it. This makes nothing durable: the device's own
/// cache and the file's metadata are not written.
pub fn finish_writeback(file: impl AsFd, offset: u64, bytes: u64) -> io::Result<()> {
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(file.as_fd(), offset, bytes, all)
}

fn sync_file_range(file: BorrowedFd<'_>, offset: u64, bytes: u64, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the call takes numbers and an open descriptor.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, bytes as i64, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn writeback_cleans_the_pages_of_a_file() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&[1; 1 << 16]).expect("written");
        start_writeback(&file, 0, 1 << 16).expect("started");
        finish_writeback(&file, 0, 1 << 16).expect("finished");
        // Before Linux 6.5 the call is absent.
        let Ok(pages) = cached_pages(&file, 0, 0) else { return };
        assert_eq!((pages.cached, pages.writeback), (16, 0));
    }
}
