//! The open files of a recording.

use serde::{Deserialize, Serialize};

use crate::{StreamKind, Untrusted};

/// The flag of open(2), the same on x86-64 and aarch64.
const O_APPEND: i32 = 0o2000;

/// An open file description, see open(2): fork(2) and dup(2) share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct OpenFile {
    /// Index in [`Recording::files`](super::Recording::files).
    pub id: u32,
    /// Path, or the target of the descriptor's link in /proc (`pipe:[123]`).
    pub path: Untrusted,
    pub kind: StreamKind,
    /// Device number of the file system; 0 if unknown.
    pub dev: u64,
    /// Inode number. Two open files of one file have equal `dev` and `ino`.
    pub ino: u64,
    /// Flags of open(2) (O_APPEND, O_SYNC, O_DIRECT …).
    pub flags: i32,
    /// Process that opened the file; `None` if it was open before the recording.
    pub opened_by: Option<u32>,
    /// `st_blksize` of stat(2); 0 if unknown.
    pub block_bytes: u32,
    /// Size of a regular file at the last check.
    pub size_bytes: Option<u64>,
    /// Capacity of a pipe, if known.
    pub pipe_bytes: Option<u64>,
    /// Alignment that O_DIRECT requires of memory addresses and of file offsets (statx(2), STATX_DIOALIGN).
    pub direct_align: Option<(u32, u32)>,
    /// The first opening of the same regular file by another path (a symbolic or hard link, a `..`). Both paths led to one
    /// inode when this file was opened; the inode number alone is not enough, because a deleted file's number is reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<u32>,
}

impl OpenFile {
    /// Returns whether each write goes to the end of the file (O_APPEND).
    pub fn appends(&self) -> bool {
        self.flags & O_APPEND != 0
    }

    /// Returns whether the open flags create or truncate the file.
    pub fn is_made_by_opening(&self) -> bool {
        const O_CREAT_O_TRUNC: i32 = 0o100 | 0o1000;
        self.opened_by.is_some() && self.flags & O_CREAT_O_TRUNC != 0
    }

    /// Returns whether this is a FIFO, which has a path. The path of an unnamed pipe contains its inode (`pipe:[123]`).
    pub fn is_fifo(&self) -> bool {
        self.kind == StreamKind::Pipe && self.path.exact().starts_with('/')
    }

    /// Returns whether the file was opened with O_DSYNC, which O_SYNC includes. The bit is equal on x86-64 and aarch64.
    pub fn waits_for_device(&self) -> bool {
        const O_DSYNC: i32 = 0o10000;
        self.flags & O_DSYNC != 0
    }
}
