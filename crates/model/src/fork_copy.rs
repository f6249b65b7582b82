//! Pending bytes that fork(2) has copied from one process to another.

use serde::{Deserialize, Serialize};

use crate::{Size, Untrusted};

/// The first pending bytes of a stream, which another process has too: fork(2) copied them with the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkCopy {
    /// The process with the copy.
    pub pid: u32,
    /// Address of the stream object, in both processes.
    pub address: u64,
    /// Descriptor of the stream in `pid`.
    pub fd: i32,
    /// The copied bytes, or the first of them.
    pub bytes: Vec<u8>,
    /// Both processes have more pending bytes, which were not compared.
    pub is_cut: bool,
    /// The process whose bytes count.
    pub original: u32,
    /// Name of that process.
    pub original_comm: Untrusted,
}

impl ForkCopy {
    /// Returns the number of copied bytes for a sentence about a stream that has more: "the first 9 B", "at least 256 B".
    pub fn beginning(copied_bytes: u64, is_cut: bool) -> String {
        format!("{} {}", if is_cut { "at least" } else { "the first" }, Size(copied_bytes))
    }

    /// Returns a description for a sentence whose subject is the copy: "a copy that fork(2) made of bytes of cat (7)".
    pub fn description(&self) -> String {
        format!("a copy that fork(2) made of bytes of {} ({})", self.original_comm, self.original)
    }
}
