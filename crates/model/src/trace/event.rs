//! Events of a recording: process lifecycle, buffer snapshots and single calls.

use serde::{Deserialize, Serialize};

use super::{Buffer, Exit, SnapshotMoment};
use crate::Untrusted;

/// The number of calls of a stream that each backend records one by one, from the first one on: enough to tell its mode.
pub const FIRST_CALLS: u32 = 8;
/// The number of failed and short calls of a stream that each backend records one by one.
pub const FAILED_CALLS: u32 = 32;
/// The number of first bytes that a call keeps.
pub const HEAD_BYTES: usize = 64;

/// Defines each operation once: the name of its system call, and its numbers on x86-64 and aarch64 (syscalls(2)).
macro_rules! ops {
    ($($variant:ident = $name:literal: $x86_64:literal, $aarch64:tt;)*) => {
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

            /// Returns the number of the system call on the architecture of this build. None if it has no such call:
            /// aarch64 has only the `*at` forms of the calls that name files.
            pub const fn number(self) -> Option<i64> {
                match self {
                    $(Self::$variant => if cfg!(target_arch = "x86_64") { Some($x86_64) } else { number!($aarch64) },)*
                }
            }
        }
    };
}

macro_rules! number {
    (none) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

ops! {
    Read = "read": 0, 63; Pread = "pread64": 17, 67; Readv = "readv": 19, 65; Preadv = "preadv": 295, 69;
    Preadv2 = "preadv2": 327, 286; Recvfrom = "recvfrom": 45, 207; Recvmsg = "recvmsg": 47, 212;
    Recvmmsg = "recvmmsg": 299, 243; Sendmmsg = "sendmmsg": 307, 269;
    Write = "write": 1, 64; Pwrite = "pwrite64": 18, 68; Writev = "writev": 20, 66; Pwritev = "pwritev": 296, 70;
    Pwritev2 = "pwritev2": 328, 287; Sendto = "sendto": 44, 206; Sendmsg = "sendmsg": 46, 211;
    Sendfile = "sendfile": 40, 71; Splice = "splice": 275, 76; Tee = "tee": 276, 77; Vmsplice = "vmsplice": 278, 75;
    CopyFileRange = "copy_file_range": 326, 285; Open = "open": 2, none; Openat = "openat": 257, 56;
    Openat2 = "openat2": 437, 437; Creat = "creat": 85, none; Close = "close": 3, 57;
    CloseRange = "close_range": 436, 436; Dup = "dup": 32, 23; Dup2 = "dup2": 33, none; Dup3 = "dup3": 292, 24;
    Fcntl = "fcntl": 72, 25; Pipe = "pipe": 22, none; Pipe2 = "pipe2": 293, 59; Socket = "socket": 41, 198;
    Socketpair = "socketpair": 53, 199; Accept = "accept": 43, 202; Accept4 = "accept4": 288, 242;
    Eventfd2 = "eventfd2": 290, 19; MemfdCreate = "memfd_create": 319, 279; Lseek = "lseek": 8, 62;
    Fsync = "fsync": 74, 82; Fdatasync = "fdatasync": 75, 83; SyncFileRange = "sync_file_range": 277, 84;
    Sync = "sync": 162, 81; Syncfs = "syncfs": 306, 267; Msync = "msync": 26, 227; Fallocate = "fallocate": 285, 47;
    Truncate = "truncate": 76, 45; Ftruncate = "ftruncate": 77, 46; Fadvise = "fadvise64": 221, 223;
    Rename = "rename": 82, none; Renameat = "renameat": 264, 38; Renameat2 = "renameat2": 316, 276;
    Unlink = "unlink": 87, none; Unlinkat = "unlinkat": 263, 35; Link = "link": 86, none; Linkat = "linkat": 265, 37;
    Mmap = "mmap": 9, 222; IoUringSetup = "io_uring_setup": 425, 425; IoUringEnter = "io_uring_enter": 426, 426;
    IoSubmit = "io_submit": 209, 2; Kill = "kill": 62, 129; Tgkill = "tgkill": 234, 131; Execve = "execve": 59, 221;
    Execveat = "execveat": 322, 281;
}

impl Op {
    /// Returns whether the call moves bytes from a descriptor (its first argument) into the program's memory.
    pub fn reads(self) -> bool {
        use Op::*;
        matches!(self, Read | Pread | Readv | Preadv | Preadv2 | Recvfrom | Recvmsg | Recvmmsg)
    }

    /// Returns whether the call moves bytes from the program's memory to a descriptor.
    pub fn writes(self) -> bool {
        use Op::*;
        matches!(self, Write | Pwrite | Writev | Pwritev | Pwritev2 | Sendto | Sendmsg | Sendmmsg | Vmsplice)
    }

    /// Returns whether the call moves bytes between two descriptors.
    pub fn copies(self) -> bool {
        matches!(self, Op::Sendfile | Op::Splice | Op::Tee | Op::CopyFileRange)
    }

    /// Returns the file offset among the arguments; None if the call uses that of the open file. For preadv2 and pwritev2, -1
    /// means the offset of the open file.
    pub fn offset_argument(self, args: &[u64; 6]) -> Option<u64> {
        use Op::*;
        let positioned = matches!(self, Pread | Preadv | Preadv2 | Pwrite | Pwritev | Pwritev2);
        (positioned && args[3] != u64::MAX).then_some(args[3])
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
    /// Return value: a count, a descriptor, or -errno. Where the return value of a receive or send is no number of bytes that it
    /// moved (sendmmsg, MSG_TRUNC), the number of bytes.
    pub result: i64,
    /// Requested bytes; 0 for a call that moves none.
    #[serde(rename = "asked")]
    pub requested_bytes: u64,
    /// Offset in the file, if known.
    pub position: Option<u64>,
    /// The first bytes that were written (or read, if captured), at most 64.
    pub head: Vec<u8>,
    /// The last byte that was written.
    pub tail: Option<u8>,
    /// Paths among the arguments: one for open and unlink, the old and the new one for rename and link.
    pub paths: Vec<Untrusted>,
    /// Details of a successful rename. Boxed, because few calls are renames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<Box<Rename>>,
}

impl Call {
    /// Returns a call of which no more is known, and which requested no bytes.
    pub fn new(op: Op, fd: i32, file: Option<u32>, args: [u64; 6], result: i64) -> Self {
        Self {
            op,
            fd,
            file,
            args,
            result,
            requested_bytes: 0,
            position: None,
            head: Vec::new(),
            tail: None,
            paths: Vec::new(),
            rename: None,
        }
    }
}

/// Details of a rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// Old path, starting at the root directory.
    pub from: Untrusted,
    /// New path, starting at the root directory.
    pub to: Untrusted,
    /// The rename replaced an existing file; `None` if unknown.
    pub replaced: Option<bool>,
    /// Inode number of the new path's directory, which may have several paths; `None` if unknown.
    pub directory: Option<u64>,
}

/// The name of the call in [`EventKind::Buffers`] that blocks the parent of vfork(2) and posix_spawn(3): its child shares the memory
/// until it executes a program.
pub const IN_VFORK: &str = "vfork";

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
        /// When the memory had been read, if the process was not stopped for it; it may have run on since the event's time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_until_s: Option<f64>,
    },
    /// A gap: of the time until `until_s` only totals are known.
    #[serde(rename = "unwatched")]
    Gap {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_of_minus_one_is_that_of_the_open_file() {
        let args = |offset: u64| [3, 0, 1, offset, 0, 0];
        for op in [Op::Preadv2, Op::Pwritev2] {
            assert_eq!(op.offset_argument(&args(u64::MAX)), None, "{op:?}");
            assert_eq!(op.offset_argument(&args(4096)), Some(4096), "{op:?}");
        }
        assert_eq!(Op::Pread.offset_argument(&args(0)), Some(0));
        assert_eq!(Op::Write.offset_argument(&args(0)), None);
    }
}
