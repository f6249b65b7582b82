//! A recorded run, one call at a time: the content of each buffer, pipe and file between two calls.

use std::ops::Range;

use crate::{Mode, StreamKind};

/// One step of a run, and where the bytes are after it.
#[derive(Debug, Clone, PartialEq)]
pub struct LabStep {
    /// The call or event, as a sentence.
    pub text: String,
    /// The effect of the step on the bytes, as a sentence; may be empty.
    pub note: String,
    /// Process that made the call; `None` for the summary at the end of the run.
    pub actor: Option<u32>,
    /// Bytes that this step moved from a process to a file.
    pub moved: Option<ByteTransfer>,
    /// Processes that exist or existed at this step.
    pub processes: Vec<StepProcess>,
    /// Files and pipes that the run reads or writes.
    pub files: Vec<StepFile>,
}

/// Bytes that one step moved from a process to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ByteTransfer {
    pub pid: u32,
    /// Index in [`LabStep::files`].
    pub file: usize,
    pub bytes: u64,
}

/// A process and its stream buffers.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct StepProcess {
    pub pid: u32,
    pub name: String,
    /// Parent process, if it is one of [`LabStep::processes`].
    pub parent: Option<u32>,
    /// How the process ended; `None` while it is alive.
    pub ended: Option<String>,
    pub streams: Vec<StepStream>,
}

/// A stream buffer of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct StepStream {
    /// Descriptor of the stream.
    pub fd: i32,
    /// Name of the file, pipe or device behind the descriptor.
    pub target: String,
    /// The program reads from the file behind the descriptor.
    pub reads: bool,
    /// Buffering mode; `None` before the first use.
    pub mode: Option<Mode>,
    /// Size of the buffer in bytes.
    pub buffer_bytes: u64,
    /// Pending bytes: written by the program, not yet by the kernel.
    pub pending: KnownBytes,
    /// Read-ahead bytes: read from the kernel, not yet used by the program.
    pub unread: KnownBytes,
    /// This step created the buffer as the copy of a parent's buffer.
    pub copied: bool,
    /// Length of the prefix of `pending` that another process holds too, since a fork.
    pub shared: u64,
}

/// A number of bytes, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownBytes {
    /// Number of bytes, known and unknown.
    pub count: u64,
    /// The first bytes; at most `count`.
    pub head: Vec<u8>,
}

/// A file, pipe or device outside of the processes.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFile {
    /// File name without its directory.
    pub name: String,
    /// Kind of the file.
    pub kind: StreamKind,
    /// Size in bytes; for a pipe, the bytes that are not read yet.
    pub bytes: u64,
    /// The first bytes of the content; `None` for a byte that the recording does not have.
    pub content: Vec<Option<u8>>,
    /// Range that this step wrote.
    pub added: Option<Range<u64>>,
    /// The run has written or truncated the file.
    pub written: bool,
    /// Bytes that a sync call has put on the device; `None` before the first sync call.
    pub synced: Option<u64>,
}
