//! What a walker found in a program's own memory: its stream buffers.

use serde::{Deserialize, Serialize};

use crate::Mode;

/// Whose buffer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeId {
    /// glibc's FILE.
    Glibc,
    /// musl's FILE.
    Musl,
    /// libweir's stream.
    Libweir,
    /// CPython's io objects.
    Cpython,
    /// Perl's file handles.
    Perl,
    /// Ruby's IO objects.
    Ruby,
    /// Tcl's channels.
    Tcl,
    /// Go's bufio.
    Go,
    /// Rust's BufWriter, LineWriter.
    Rust,
}

/// What happened when a walker looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// A look at a running program.
    Sample,
    /// At the entry of a system call, where that was asked for.
    Call,
    /// At fork(2), in the parent, before the child runs.
    Fork,
    /// At the entry of execve(2); whether it succeeds is seen later.
    Exec,
    /// At exit_group(2): what is pending now is lost.
    Exit,
    /// When a signal ends the process.
    Signal,
}

/// One stream buffer of a process at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Whose.
    pub walker: RuntimeId,
    /// Where the stream object is in the program's memory: the same number is the same stream.
    pub address: u64,
    /// The descriptor; -1: none (a memory stream).
    pub fd: i32,
    /// How it is set; None: not yet decided (before its first use).
    pub mode: Option<Mode>,
    /// Size of the buffer; 0: none yet.
    pub buffer_bytes: u64,
    /// Bytes written by the program and not by the kernel yet.
    pub pending_bytes: u64,
    /// The first of them, at most 256.
    pub pending: Vec<u8>,
    /// Bytes taken from the kernel and not by the program yet.
    pub unread_bytes: u64,
    /// The first of them, at most 64.
    pub unread: Vec<u8>,
}

impl Buffer {
    /// Whether what is in it can be written out from outside: a list of the runtime's leads to it. What a search
    /// finds (bufio of Go, Rust's BufWriter) may look different to the next, which is enough to tell of, but not to
    /// write by.
    pub fn is_listed(&self) -> bool {
        match self.walker {
            RuntimeId::Go => false,
            RuntimeId::Rust => self.fd == 1 && self.mode == Some(Mode::Line),
            _ => true,
        }
    }
}
