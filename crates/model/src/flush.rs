//! The result of `weir flush` (schema weir-flush/1).
//!
//! Field names are the interface (docs/schemas/weir-flush-1.schema.json).

use serde::{Deserialize, Serialize};

use crate::Untrusted;
use crate::trace::RuntimeId;

/// The most pending bytes of a process that `weir flush` writes without `--limit`.
pub const DEFAULT_LIMIT: u64 = 48 << 20;

/// Value of [`FlushDocument::schema`].
pub const SCHEMA: &str = "weir-flush/1";

/// The document that `weir flush --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlushDocument {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Processes in the order of the command line, each followed by its descendants.
    pub processes: Vec<FlushedProcess>,
}

impl FlushDocument {
    /// Makes the document of these processes.
    pub fn new(processes: Vec<FlushedProcess>) -> Self {
        Self { schema: SCHEMA, processes }
    }
}

/// One process and its flushed streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FlushedProcess {
    pub pid: u32,
    pub comm: Untrusted,
    /// Streams that had pending bytes, in the order in which weir wrote them.
    pub streams: Vec<FlushedStream>,
    /// Buffers that weir cannot read, a sentence each.
    pub unseen: Vec<String>,
    /// Why the process could not be flushed at all.
    pub error: Option<String>,
}

/// One stream that had pending bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushedStream {
    /// Descriptor of the stream.
    pub fd: i32,
    /// Target of the descriptor's link in /proc.
    pub path: Untrusted,
    /// Runtime that owns the buffer.
    pub walker: RuntimeId,
    /// Bytes that weir wrote.
    pub written_bytes: u64,
    /// Bytes that are still pending.
    pub left_bytes: u64,
    /// Why bytes are still pending.
    pub why: Option<String>,
    /// The process that has the first pending bytes too, because fork(2) copied them. weir leaves them to that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<u32>,
    /// Address of the stream object in the process's memory.
    #[serde(skip)]
    pub address: u64,
    /// Another attempt cannot succeed.
    #[serde(skip)]
    pub refused: bool,
}
