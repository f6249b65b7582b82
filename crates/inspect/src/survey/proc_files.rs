//! Files of /proc that stay open: reading one again costs a fifth of opening it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Left for everything else that the process opens.
const SPARE: u64 = 64;

/// How many files may stay open.
#[derive(Debug)]
pub(super) struct ProcFiles {
    left: usize,
}

impl ProcFiles {
    /// As many as the limit of descriptors allows.
    pub fn new() -> ProcFiles {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let left = limit.map_or(usize::MAX, |most| most.saturating_sub(SPARE) as usize);
        ProcFiles { left }
    }

    /// A file of a process; it stays open if there is room.
    pub fn open(&mut self, path: String) -> OpenProcFile {
        let file = if self.left > 0 { File::open(&path).ok() } else { None };
        self.left -= usize::from(file.is_some());
        OpenProcFile { path, file }
    }

    /// So many are closed.
    pub fn give_back(&mut self, count: usize) {
        self.left += count;
    }
}

/// A file that is read again and again.
#[derive(Debug)]
pub(super) struct OpenProcFile {
    path: String,
    file: Option<File>,
}

impl OpenProcFile {
    /// Its beginning, as much as `into` takes; how many bytes that are.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) => file.read_at(into, 0),
            None => File::open(&self.path)?.read_at(into, 0),
        }
    }

    /// Does it hold a descriptor?
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }
}
