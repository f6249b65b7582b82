//! A recorded run, one call at a time: what was in each buffer, pipe and file between two calls.

mod content;
mod events;
mod streams;
#[cfg(test)]
mod tests;
mod walk;
mod words;

use std::ops::Range;

use weir_model::trace::Recording;
use weir_model::{Mode, StreamKind};

/// Steps kept; of a longer run the rest is left out, and the last step says so.
const STEPS_MOST: usize = 2_000;

/// One thing that happened, and where the bytes were afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happened.
    pub text: String,
    /// What that means for the bytes.
    pub note: String,
    /// The process that did it; None: the end of all.
    pub actor: Option<u32>,
    /// Bytes that went from a process to a file by this.
    pub moved: Option<Moved>,
    /// Those that have begun.
    pub processes: Vec<Process>,
    /// Those that bytes go to or come from in this run.
    pub files: Vec<File>,
}

/// Bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// From this process.
    pub pid: u32,
    /// To this file: an index in [`Step::files`].
    pub file: usize,
    /// So many.
    pub bytes: u64,
}

/// A process, as far as bytes are in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The process that made it, if that is shown as well.
    pub parent: Option<u32>,
    /// How it ended; None: it lives.
    pub ended: Option<String>,
    /// Its stream buffers.
    pub streams: Vec<Stream>,
}

/// One stream buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// The descriptor.
    pub fd: i32,
    /// What is behind it.
    pub target: String,
    /// How it is set.
    pub mode: Option<Mode>,
    /// Bytes that it has room for.
    pub room: u64,
    /// Written by the program, and not by the kernel yet.
    pub pending: Bytes,
    /// Taken from the kernel, and not by the program yet.
    pub unread: Bytes,
    /// It came into being as a copy, by this step.
    pub copied: bool,
    /// Of the pending bytes the first so many are in another process as well, since a fork.
    pub shared: u64,
}

/// Some bytes, of which the first are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bytes {
    /// How many.
    pub count: u64,
    /// The first.
    pub head: Vec<u8>,
}

/// What is outside of the processes.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its name, without its directory.
    pub name: String,
    /// What it is.
    pub kind: StreamKind,
    /// Bytes in it now; of a pipe, those that nobody has read yet.
    pub bytes: u64,
    /// The bytes as far as they are known.
    pub content: Vec<Option<u8>>,
    /// What this step put there.
    pub added: Option<Range<u64>>,
    /// Bytes that the program waited for until they were on the device; None: it never asked.
    pub synced: Option<u64>,
}

/// Goes through a recording.
pub fn steps(recording: &Recording) -> Vec<Step> {
    walk::Walk::new(recording).steps()
}
