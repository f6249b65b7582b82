//! Stream buffers that a buffer walker read from a process's memory.

use serde::{Deserialize, Serialize};

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
            unread_bytes: 0,
            unread: Vec::new(),
            found_by_search: false,
            has_write_address: false,
        }
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
    fn only_a_stream_that_a_search_found_has_the_field() {
        let listed =
            Buffer { mode: Some(Mode::Full), buffer_bytes: 4096, ..Buffer::empty(RuntimeId::GLIBC, 1, 1) };
        let json = |buffer: &Buffer| serde_json::to_string(buffer).unwrap();
        assert!(!json(&listed).contains("found_by_search"));
        let found = Buffer { found_by_search: true, ..listed.clone() };
        for buffer in [listed, found] {
            assert_eq!(serde_json::from_str::<Buffer>(&json(&buffer)).unwrap(), buffer);
        }
    }
}
