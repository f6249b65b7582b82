//! The result of `weir peek`: a buffer snapshot of running processes (schema weir-peek/1).
//!
//! Field names are the interface (docs/schemas/weir-peek-1.schema.json).

use serde::{Deserialize, Serialize};

use crate::fork_copy::ForkCopy;
use crate::trace::RuntimeId;
use crate::untrusted::is_invisible;
use crate::{Mode, StreamKind, Untrusted};

/// Value of [`PeekDocument::schema`].
pub const SCHEMA: &str = "weir-peek/1";

/// The document that `weir peek --json` writes.
#[derive(Debug, Serialize)]
pub struct PeekDocument<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Processes in the order of the command line, each followed by its descendants.
    pub processes: &'a [Peek],
}

impl<'a> PeekDocument<'a> {
    /// Makes the document of these processes.
    pub fn new(processes: &'a [Peek]) -> Self {
        Self { schema: SCHEMA, processes }
    }
}

/// The streams of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Peek {
    pub pid: u32,
    pub comm: Untrusted,
    /// Arguments, the program first.
    pub command: Vec<Untrusted>,
    /// Number of threads in /proc/PID/task.
    pub threads: u64,
    /// State of the main thread.
    pub state: MainThreadState,
    /// Seconds since any thread last ran; `None` if one runs or the time is unknown.
    pub idle_s: Option<f64>,
    /// Streams in the order in which the program would write them at exit.
    pub streams: Vec<PeekStream>,
    /// The output call in which the main thread blocks; `None` if it is in none, or it went on while weir read its bytes.
    #[serde(default)]
    pub writing: Option<WriteInProgress>,
    /// Those of other threads, by thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_writes: Vec<WriteInProgress>,
    /// Buffers that weir cannot read, a sentence each.
    pub unseen: Vec<String>,
    /// The command that starts the program again, for the screen; `None` if it was not looked for.
    #[serde(skip)]
    pub restart: Option<RestartCommand>,
}

/// An output call in which a thread blocks: write(2), writev(2), pwrite(2), sendto(2), sendmsg(2) and their variants. The kernel may
/// have taken a part of its bytes: how many, nobody can see before it returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteInProgress {
    /// TID of the thread.
    pub tid: u32,
    /// Name of the call.
    pub call: String,
    /// Descriptor that it writes to.
    pub fd: i32,
    /// Bytes of the whole write.
    pub bytes: u64,
    /// The first of these bytes, with escapes as in C.
    pub preview: String,
    /// Number of bytes in `preview`.
    pub preview_bytes: u64,
}

/// The command that starts the program of a process again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartCommand {
    /// Known from the process's arguments.
    Known {
        /// The program and its arguments, as exec(3) takes them.
        words: Vec<String>,
        /// The directory in which to start it, if it is not the current one.
        directory: Option<String>,
    },
    /// Not known, with the reason as a clause.
    Unknown(&'static str),
}

/// State of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum MainThreadState {
    /// On a CPU or waiting for one.
    Running,
    /// Blocked in a system call.
    Asleep {
        /// Name of the call; empty if unknown.
        call: String,
        /// Descriptor among the call's arguments.
        fd: Option<i32>,
    },
    /// Stopped by job control.
    Stopped,
    /// In a stop of ptrace(2), which only its tracer ends.
    StoppedByTracer {
        /// PID of the tracer.
        tracer: u32,
        /// Name of the tracer.
        comm: Untrusted,
    },
}

/// One stream of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeekStream {
    /// Runtime that owns the buffer.
    pub walker: RuntimeId,
    /// Descriptor; -1 for none.
    pub fd: i32,
    /// Kind of file behind the descriptor.
    pub kind: StreamKind,
    /// Target of the descriptor's link in /proc.
    pub path: Untrusted,
    /// Processes at the other end of a pipe.
    pub peers: Vec<PipePeer>,
    /// weir could read the descriptors of all processes, so `peers` lacks none.
    pub peers_complete: bool,
    /// Buffering mode; `None` before the first use.
    pub mode: Option<Mode>,
    /// Size of the buffer; 0 before it is allocated.
    pub buffer_bytes: u64,
    /// Bytes written by the program, not yet by the kernel.
    pub pending_bytes: u64,
    /// How many of the last pending bytes the program still converts to another encoding. `weir` does not write them.
    #[serde(default, skip_serializing_if = "crate::trace::is_zero")]
    pub unconverted_bytes: u64,
    /// Seconds that the pending bytes are known to be pending; `None` if unknown.
    pub since_s: Option<f64>,
    /// Read-ahead bytes: read from the kernel, not yet used by the program.
    pub unread_bytes: u64,
    /// A thread holds the stream's lock; `None` if it has no lock or its state is unknown.
    pub locked: Option<bool>,
    /// `weir flush` can write the pending bytes.
    pub can_be_flushed: bool,
    /// A search of the memory found the stream. `weir flush` never writes the bytes of such a stream.
    pub found_by_search: bool,
    /// The first pending bytes, or read-ahead bytes if none are pending, with escapes as in C.
    pub preview: String,
    /// Number of bytes in `preview`.
    pub preview_bytes: u64,
    /// The process that has the first pending bytes too, because fork(2) copied them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<u32>,
    /// Name of that process, for the screen.
    #[serde(skip)]
    pub copy_of_comm: Untrusted,
    /// How many of the first pending bytes are such a copy, as far as they were compared.
    #[serde(default, skip_serializing_if = "crate::trace::is_zero")]
    pub copied_bytes: u64,
    /// As [`crate::fork_copy::ForkCopy::is_cut`], for the screen.
    #[serde(skip)]
    pub is_copy_cut: bool,
    /// Address of the stream object in the process's memory.
    #[serde(skip)]
    pub address: u64,
}

impl PeekStream {
    /// Returns which of the bytes are a copy: "the first 9 B: a copy that fork(2) made of bytes of cat (7)"; None if none are.
    pub fn copy_description(&self) -> Option<String> {
        let copy = format!("a copy that fork(2) made of bytes of {} ({})", self.copy_of_comm, self.copy_of?);
        let is_all = self.copied_bytes >= self.pending_bytes;
        let beginning = || ForkCopy::beginning(self.copied_bytes, self.is_copy_cut);
        Some(if is_all { copy } else { format!("{}: {copy}", beginning()) })
    }
}

/// A process at the other end of a pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PipePeer {
    pub pid: u32,
    pub comm: Untrusted,
}

/// Returns bytes as text on one line with escapes as in C. Invalid UTF-8, control characters and invisible characters
/// become `\xNN`.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                _ if letter.is_control() || is_invisible(letter) => {
                    let mut encoded = [0; 4];
                    letter
                        .encode_utf8(&mut encoded)
                        .bytes()
                        .for_each(|byte| text += &format!("\\x{byte:02x}"));
                }
                _ => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_are_one_line() {
        assert_eq!(escaped(b"ready: \"8080\"\n\tc:\\x\r"), r#"ready: \"8080\"\n\tc:\\x\r"#);
        assert_eq!(escaped("grüße".as_bytes()), "grüße");
        assert_eq!(escaped(b"\x1b[31m\xff\x00"), r"\x1b[31m\xff\x00");
        assert_eq!(escaped("\u{202e}".as_bytes()), r"\xe2\x80\xae");
    }
}
