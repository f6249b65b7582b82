//! Events of a recording: process lifecycle, buffer snapshots and single calls.

use serde::{Deserialize, Serialize};

use super::{Buffer, Exit, SnapshotMoment};

/// Defines each operation once with the name of its system call.
macro_rules! ops {
    ($($variant:ident = $name:literal;)*) => {
        /// A system call that weir traces.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Op { $(#[doc = $name] #[serde(rename = $name)] $variant,)* }

        impl Op {
            /// All operations, each of them once.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name of the system call.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

ops! {
    Read = "read"; Pread = "pread64"; Readv = "readv"; Preadv = "preadv"; Preadv2 = "preadv2";
    Recvfrom = "recvfrom"; Recvmsg = "recvmsg";
    Write = "write"; Pwrite = "pwrite64"; Writev = "writev"; Pwritev = "pwritev"; Pwritev2 = "pwritev2";
    Sendto = "sendto"; Sendmsg = "sendmsg";
    Sendfile = "sendfile"; Splice = "splice"; Tee = "tee"; Vmsplice = "vmsplice";
    CopyFileRange = "copy_file_range";
    Open = "open"; Openat = "openat"; Openat2 = "openat2"; Creat = "creat";
    Close = "close"; CloseRange = "close_range";
    Dup = "dup"; Dup2 = "dup2"; Dup3 = "dup3"; Fcntl = "fcntl";
    Pipe = "pipe"; Pipe2 = "pipe2"; Socket = "socket"; Socketpair = "socketpair";
    Accept = "accept"; Accept4 = "accept4"; Eventfd2 = "eventfd2"; MemfdCreate = "memfd_create";
    Lseek = "lseek"; Fsync = "fsync"; Fdatasync = "fdatasync"; SyncFileRange = "sync_file_range";
    Sync = "sync"; Syncfs = "syncfs"; Msync = "msync";
    Fallocate = "fallocate"; Truncate = "truncate"; Ftruncate = "ftruncate"; Fadvise = "fadvise64";
    Rename = "rename"; Renameat = "renameat"; Renameat2 = "renameat2";
    Unlink = "unlink"; Unlinkat = "unlinkat"; Link = "link"; Linkat = "linkat";
    Mmap = "mmap"; IoUringSetup = "io_uring_setup"; IoUringEnter = "io_uring_enter";
    IoSubmit = "io_submit";
    Kill = "kill"; Tgkill = "tgkill"; Execve = "execve"; Execveat = "execveat";
}

impl Op {
    /// Returns whether the call moves bytes from a descriptor (its first argument) into the program's memory.
    pub fn reads(self) -> bool {
        use Op::*;
        matches!(self, Read | Pread | Readv | Preadv | Preadv2 | Recvfrom | Recvmsg)
    }

    /// Returns whether the call moves bytes from the program's memory to a descriptor.
    pub fn writes(self) -> bool {
        use Op::*;
        matches!(self, Write | Pwrite | Writev | Pwritev | Pwritev2 | Sendto | Sendmsg | Vmsplice)
    }

    /// Returns whether the call moves bytes between two descriptors.
    pub fn copies(self) -> bool {
        matches!(self, Op::Sendfile | Op::Splice | Op::Tee | Op::CopyFileRange)
    }

    /// Returns whether the call has an offset argument and does not use the offset of the open file.
    pub fn positioned(self) -> bool {
        use Op::*;
        matches!(self, Pread | Preadv | Preadv2 | Pwrite | Pwritev | Pwritev2)
    }

    /// Returns whether the call opens a file by a path.
    pub fn opens(self) -> bool {
        use Op::*;
        matches!(self, Open | Openat | Openat2 | Creat)
    }

    /// Returns whether the call's result is a new descriptor.
    pub fn makes_descriptor(self) -> bool {
        use Op::*;
        let makes = matches!(self, MemfdCreate | Eventfd2 | IoUringSetup | Socket | Accept | Accept4);
        makes || self.opens() || matches!(self, Dup | Dup2 | Dup3)
    }

    /// Returns whether the call submits asynchronous operations on descriptors that are not among its arguments. Its
    /// result is their number.
    pub fn submits(self) -> bool {
        matches!(self, Op::IoUringEnter | Op::IoSubmit)
    }

    /// Returns whether the call waits for the device.
    pub fn syncs(self) -> bool {
        use Op::*;
        matches!(self, Fsync | Fdatasync | SyncFileRange | Sync | Syncfs | Msync)
    }
}

/// One recorded system call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Call {
    pub op: Op,
    /// Descriptor; -1 for none.
    pub fd: i32,
    /// Open file behind the descriptor, if known: index in [`super::Recording::files`].
    pub file: Option<u32>,
    pub args: [u64; 6],
    /// Return value: a count, a descriptor, or -errno.
    pub result: i64,
    /// Requested bytes; 0 for a call that moves none.
    pub asked: u64,
    /// Offset in the file, if known.
    pub position: Option<u64>,
    /// The first bytes that were written (or read, if captured), at most 64.
    pub head: Vec<u8>,
    /// The last byte that was written.
    pub tail: Option<u8>,
    /// Paths among the arguments: one for open and unlink, the old and the new one for rename and link.
    pub paths: Vec<String>,
    /// Details of a successful rename. Boxed, because few calls are renames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<Box<Rename>>,
}

/// Details of a rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// Old path, starting at the root directory.
    pub from: String,
    /// New path, starting at the root directory.
    pub to: String,
    /// The rename replaced an existing file; `None` if unknown.
    pub replaced: Option<bool>,
    /// Inode number of the new path's directory, which may have several paths; `None` if unknown.
    pub directory: Option<u64>,
}

/// Kind of an event, with its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A system call. The recording has all rare calls; of reads and writes it has the first and last of each stream,
    /// failed and short ones, and the first ones after fork(2).
    Call(Call),
    /// fork(2), vfork(2) or clone(2) of a process, not of a thread.
    Fork {
        /// PID of the child.
        child: u32,
    },
    /// execve(2) succeeded and the process runs another image.
    Exec {
        /// Index in [`super::Process::images`].
        image: u32,
    },
    /// The exit of the process.
    Exit(Exit),
    /// The delivery of a signal that kills the process.
    Signal {
        /// Number of the signal, see signal(7).
        number: i32,
    },
    /// A buffer snapshot of the process.
    Buffers {
        /// Event at which the snapshot was taken.
        moment: SnapshotMoment,
        /// Buffers of all streams, also empty ones.
        buffers: Vec<Buffer>,
        /// System call that blocked the main thread; [`SnapshotMoment::Sample`] only.
        waits_in: Option<Op>,
        /// Name of the system call, also of one that is not an [`Op`]; empty if unknown.
        waits_in_name: String,
        /// Known open files behind descriptors: descriptor, index in [`super::Recording::files`].
        #[serde(default)]
        files: Vec<(i32, u32)>,
    },
    /// A gap: of the time until `until_s` only totals are known.
    Unwatched {
        /// End of the gap.
        until_s: f64,
    },
}

/// An event of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Event {
    /// Time in seconds since the start of the recording.
    pub at_s: f64,
    pub pid: u32,
    pub tid: u32,
    #[serde(rename = "what")]
    pub kind: EventKind,
}
