//! Files of /proc that stay open: a repeated read costs a fifth of an open and a read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Descriptors that are left for the rest of the program.
const SPARE_FDS: u64 = 64;

/// The number of files that may stay open.
#[derive(Debug)]
pub(super) struct ProcFiles {
    left: usize,
}

impl ProcFiles {
    /// Allows as many files as RLIMIT_NOFILE permits.
    pub fn new() -> ProcFiles {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let left = limit.map_or(usize::MAX, |most| most.saturating_sub(SPARE_FDS) as usize);
        ProcFiles { left }
    }

    /// Opens a file. It stays open if the limit permits it.
    pub fn open(&mut self, path: String) -> OpenProcFile {
        let file = if self.left > 0 { File::open(&path).ok() } else { None };
        self.left -= usize::from(file.is_some());
        OpenProcFile { path, file }
    }

    /// Returns the descriptors of closed files.
    pub fn release(&mut self, count: usize) {
        self.left += count;
    }
}

/// A file that is read repeatedly.
#[derive(Debug)]
pub(super) struct OpenProcFile {
    path: String,
    file: Option<File>,
}

impl OpenProcFile {
    /// Reads the beginning of the file. Returns the number of bytes read.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) => file.read_at(into, 0),
            None => File::open(&self.path)?.read_at(into, 0),
        }
    }

    /// Returns whether the file has a descriptor.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }
}
