//! All that waits in a stream to be written, and how the stream is emptied from outside.

use weir_model::trace::Walker;

/// What one stream of a process holds that the kernel has not got yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Whose stream it is.
    pub walker: Walker,
    /// Where the stream object is, as in [`weir_model::trace::Buffer::address`].
    pub stream: u64,
    /// Its descriptor in that process.
    pub fd: i32,
    /// All the bytes, in the order in which the program would write them.
    pub bytes: Vec<u8>,
    /// Whether a thread holds the stream's own lock; None: it has none, or it is not known.
    pub locked: Option<bool>,
    /// What to store, in this order, so that the stream is as its own flush would leave it. To be done only while
    /// no thread of the process is inside the stream. Empty: it cannot be emptied from outside.
    pub emptied: Vec<Store>,
}

/// Bytes to store into a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Where.
    pub address: u64,
    /// What.
    pub bytes: Vec<u8>,
}

impl Store {
    /// A little-endian word of 8 bytes.
    pub fn u64(address: u64, value: u64) -> Store {
        Store { address, bytes: value.to_le_bytes().to_vec() }
    }
}
