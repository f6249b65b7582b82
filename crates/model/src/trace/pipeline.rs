//! Processes that write into each other: what `a | b | c` was in a run.

use serde::{Deserialize, Serialize};

use crate::Mode;

/// One side of a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipeEnd {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its descriptor.
    pub fd: i32,
    /// Calls on it.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Mean bytes of a call.
    pub mean_bytes: f64,
    /// How it buffers; None: it cannot be told.
    pub mode: Option<Mode>,
    /// Size of its buffer, as far as known.
    pub buffer_bytes: Option<u64>,
    /// Most bytes seen waiting in that buffer.
    pub waiting_bytes: u64,
}

/// One pipe between two processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// The pipe, as /proc/PID/fd shows it.
    pub pipe: String,
    /// What the pipe holds, where known.
    pub pipe_bytes: Option<u64>,
    /// Who writes.
    pub writer: PipeEnd,
    /// Who reads.
    pub reader: PipeEnd,
    /// A line may wait here until a buffer is full.
    pub holds_lines: bool,
}

/// Processes connected by pipes, from the first to the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its pipes in order.
    pub hops: Vec<Hop>,
    /// The hop where a line waits longest.
    pub waits_at: Option<usize>,
}
