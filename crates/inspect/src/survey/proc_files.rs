//! Files of /proc that stay open: a repeated read costs a fifth of an open and a read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Descriptors that are left for the rest of the program.
const SPARE_FDS: u64 = 64;

/// The number of files that may stay open, which all clones share.
#[derive(Debug, Clone)]
pub(super) struct ProcFiles {
    left: Arc<AtomicUsize>,
}

impl ProcFiles {
    /// Allows as many files as RLIMIT_NOFILE permits.
    pub fn new() -> ProcFiles {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let left = limit.map_or(usize::MAX, |most| most.saturating_sub(SPARE_FDS) as usize);
        ProcFiles { left: Arc::new(left.into()) }
    }

    /// Opens a file. It stays open if the limit permits it.
    pub fn open(&self, path: String) -> OpenProcFile {
        let take = |left: usize| left.checked_sub(1);
        let mut file = None;
        if self.left.fetch_update(Relaxed, Relaxed, take).is_ok() {
            file = File::open(&path).ok();
            self.left.fetch_add(usize::from(file.is_none()), Relaxed);
        }
        OpenProcFile { path, file, left: Arc::clone(&self.left) }
    }
}

/// A file that is read repeatedly.
#[derive(Debug)]
pub(super) struct OpenProcFile {
    path: String,
    file: Option<File>,
    left: Arc<AtomicUsize>,
}

impl OpenProcFile {
    /// Reads the beginning of the file. Returns the number of bytes read.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) => file.read_at(into, 0),
            None => File::open(&self.path)?.read_at(into, 0),
        }
    }
}

impl Drop for OpenProcFile {
    fn drop(&mut self) {
        self.left.fetch_add(usize::from(self.file.is_some()), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_closed_makes_room_for_another() {
        let files = ProcFiles { left: Arc::new(1.into()) };
        let open = |path: &str| files.open(path.into());
        assert!(open("/proc/self/no-such-file").file.is_none());
        let first = open("/proc/self/stat");
        let second = open("/proc/self/stat");
        assert!(first.file.is_some() && second.file.is_none());
        assert!(second.read(&mut [0; 8]).is_ok_and(|got| got == 8), "it is opened for each read");
        drop((first, second));
        assert!(open("/proc/self/stat").file.is_some());
    }
}
