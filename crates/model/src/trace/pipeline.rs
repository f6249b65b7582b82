//! Pipelines: processes connected by pipes, as by `a | b | c`.

use serde::{Deserialize, Serialize};

use crate::{Mode, Untrusted};

/// The writing or reading end of a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PipeEnd {
    pub pid: u32,
    pub comm: Untrusted,
    pub fd: i32,
    pub calls: u64,
    pub bytes: u64,
    /// Mean bytes of a call.
    pub mean_bytes: f64,
    /// Buffering mode; `None` if unknown.
    pub mode: Option<Mode>,
    /// Size of the user-space buffer, if known.
    pub buffer_bytes: Option<u64>,
    /// Largest observed number of pending bytes.
    pub waiting_bytes: u64,
}

/// A pipe between two processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Hop {
    /// Name of the pipe in /proc: `pipe:[123]`.
    pub pipe: Untrusted,
    /// Capacity of the pipe, if known.
    pub pipe_bytes: Option<u64>,
    pub writer: PipeEnd,
    pub reader: PipeEnd,
    /// The writer's buffer delays a line until it is full.
    pub holds_lines: bool,
}

/// Processes connected by pipes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Pipes from the first process to the last.
    pub hops: Vec<Hop>,
    /// Index of the hop that delays a line longest; `None` if no finding says that output comes late.
    pub waits_at: Option<usize>,
}
