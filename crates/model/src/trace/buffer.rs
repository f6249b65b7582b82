//! Stream buffers that a buffer walker read from a process's memory.

use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::{Mode, RuntimeId};

/// Event at which a buffer snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotMoment {
    /// A periodic snapshot of a running process.
    Sample,
    /// At the entry of a system call (`--every-call`).
    Call,
    /// At fork(2), in the parent, before the child runs.
    Fork,
    /// At the entry of execve(2), which may still fail.
    Exec,
    /// At exit_group(2): bytes that are pending now are lost.
    Exit,
    /// At the delivery of a signal that kills the process.
    Signal,
}

/// A stream's buffer in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Runtime that owns the buffer.
    pub walker: RuntimeId,
    /// Address of the stream object in the process's memory; identifies the stream.
    pub address: u64,
    /// Descriptor; -1 for none (a memory stream).
    pub fd: i32,
    /// Buffering mode; `None` before the first use.
    pub mode: Option<Mode>,
    /// Size of the buffer; 0 before it is allocated.
    pub buffer_bytes: u64,
    /// Bytes written by the program, not yet by the kernel.
    pub pending_bytes: u64,
    /// The first pending bytes: at most 256 in a recording, all for a drain.
    pub pending: Vec<u8>,
    /// How many of the last pending bytes the program still converts to another encoding. Nobody else may write them: they are
    /// not the bytes that the program will write, and their number may differ.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unconverted_bytes: u64,
    /// Read-ahead bytes: read from the kernel, not yet used by the program.
    pub unread_bytes: u64,
    /// The first read-ahead bytes, at most 64.
    pub unread: Vec<u8>,
    /// A search of the memory found the stream, and the next snapshot may miss it. A drain leaves it alone unless it has
    /// proved that the bytes are not written yet: they could be written twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found_by_search: bool,
    /// The runtime writes the pending bytes from a known address, so `weir run` can write those of a stream that a search found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_write_address: bool,
}

impl Buffer {
    /// Returns a stream without a buffer yet, and without a mode.
    pub fn empty(walker: RuntimeId, address: u64, fd: i32) -> Buffer {
        Buffer {
            walker,
            address,
            fd,
            mode: None,
            buffer_bytes: 0,
            pending_bytes: 0,
            pending: Vec::new(),
            unconverted_bytes: 0,
            unread_bytes: 0,
            unread: Vec::new(),
            found_by_search: false,
            has_write_address: false,
        }
    }

    /// Returns the number of pending bytes that are as the program will write them.
    pub fn converted_bytes(&self) -> u64 {
        self.pending_bytes.saturating_sub(self.unconverted_bytes)
    }

    /// Returns whether this input buffer of mawk still fills: mawk uses no byte of it before it is full. The walkers of other
    /// runtimes report read-ahead bytes that the program can use at once.
    pub fn is_being_filled(&self) -> bool {
        self.walker == RuntimeId::MAWK && self.unread_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_few_streams_are_left_out() {
        let listed =
            Buffer { mode: Some(Mode::Full), buffer_bytes: 4096, ..Buffer::empty(RuntimeId::GLIBC, 1, 1) };
        let json = |buffer: &Buffer| serde_json::to_string(buffer).unwrap();
        assert!(!json(&listed).contains("found_by_search"));
        assert!(!json(&listed).contains("unconverted_bytes"));
        let found = Buffer { found_by_search: true, ..listed.clone() };
        let converted = Buffer { pending_bytes: 9, unconverted_bytes: 4, ..listed.clone() };
        assert_eq!((listed.converted_bytes(), converted.converted_bytes()), (0, 5));
        for buffer in [listed, found, converted] {
            assert_eq!(serde_json::from_str::<Buffer>(&json(&buffer)).unwrap(), buffer);
        }
    }
}
