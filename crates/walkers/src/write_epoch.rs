//! The writes that a process has made so far, by which a walker judges whether the bytes of a stream are unwritten.
//!
//! A search of the memory finds copies of streams that are no longer used, and streams in the middle of a flush. Their
//! bytes may be written already. But if a stream has more pending bytes than at the snapshot before, and its file got no
//! write in between, none of these bytes is written: a flush would have emptied the stream before it grew.

use std::collections::HashMap;

use weir_sys::file_system::status_of_descriptor;

/// A number that changes with each write to a file, and may change without one.
pub(crate) type WriteToken = (u64, u64);

/// The writes of a process.
#[derive(Debug, Clone, Default)]
pub struct WriteEpoch {
    /// The process has its first image and memory and has made no write; set only if that is sure.
    pub none_yet: bool,
    /// All writes of the process, after a number that is the same as long as only this is known.
    pub all: (u64, u64),
    /// The writes to each file (device and inode number) while weir stops the process at each system call.
    pub by_file: Option<HashMap<(u64, u64), u64>>,
}

impl WriteEpoch {
    /// Returns the token of a descriptor's file; None if the descriptor is not open.
    pub(crate) fn token(&self, pid: u32, fd: i32) -> Option<WriteToken> {
        let (state, all) = self.all;
        let Some(by_file) = &self.by_file else { return Some((state, all)) };
        let file = WriteEpoch::file(pid, fd)?;
        Some((state, by_file.get(&file).copied().unwrap_or(0)))
    }

    /// Returns the identity of a descriptor's file.
    pub fn file(pid: u32, fd: i32) -> Option<(u64, u64)> {
        let about = status_of_descriptor(pid, fd).ok()?;
        Some((about.dev, about.ino))
    }
}
