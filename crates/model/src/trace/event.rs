//! Things that happen seldom, and single calls that were looked at.

use serde::{Deserialize, Serialize};

use super::{Buffer, Exit, Moment};

/// Defines each operation once, with the name of its system call.
macro_rules! ops {
    ($($variant:ident = $name:literal;)*) => {
        /// A system call that weir knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Op { $(#[doc = $name] #[serde(rename = $name)] $variant,)* }

        impl Op {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name of the system call.
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
    /// Moves bytes from a descriptor (its first argument) into the program's memory.
    pub fn reads(self) -> bool {
        use Op::*;
        matches!(self, Read | Pread | Readv | Preadv | Preadv2 | Recvfrom | Recvmsg)
    }

    /// Moves bytes from the program's memory to a descriptor.
    pub fn writes(self) -> bool {
        use Op::*;
        matches!(self, Write | Pwrite | Writev | Pwritev | Pwritev2 | Sendto | Sendmsg | Vmsplice)
    }

    /// Moves bytes between two descriptors.
    pub fn copies(self) -> bool {
        matches!(self, Op::Sendfile | Op::Splice | Op::Tee | Op::CopyFileRange)
    }

    /// Has an offset of its own among the arguments, so it leaves the file's alone.
    pub fn positioned(self) -> bool {
        use Op::*;
        matches!(self, Pread | Preadv | Preadv2 | Pwrite | Pwritev | Pwritev2)
    }

    /// Opens a file by its name.
    pub fn opens(self) -> bool {
        use Op::*;
        matches!(self, Open | Openat | Openat2 | Creat)
    }

    /// Its result is a new descriptor.
    pub fn makes_descriptor(self) -> bool {
        use Op::*;
        let makes = matches!(self, MemfdCreate | Eventfd2 | IoUringSetup | Socket | Accept | Accept4);
        makes || self.opens() || matches!(self, Dup | Dup2 | Dup3)
    }

    /// Hands operations to the kernel that move bytes later, of descriptors that the call does not name; its result is
    /// how many.
    pub fn submits(self) -> bool {
        matches!(self, Op::IoUringEnter | Op::IoSubmit)
    }

    /// Waits for the device.
    pub fn syncs(self) -> bool {
        use Op::*;
        matches!(self, Fsync | Fdatasync | SyncFileRange | Sync | Syncfs | Msync)
    }
}

/// One system call that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which.
    pub op: Op,
    /// Its descriptor; -1: it has none.
    pub fd: i32,
    /// The open file behind it, where known.
    pub file: Option<u32>,
    /// Its arguments as passed.
    pub args: [u64; 6],
    /// What it returned: a count, a descriptor, or -errno.
    pub result: i64,
    /// Bytes asked for, of calls that move bytes.
    pub asked: u64,
    /// Where in the file, if the call says so or it is known.
    pub position: Option<u64>,
    /// The first bytes that were written (or read, where captured), at most 64.
    pub head: Vec<u8>,
    /// The last byte that was written.
    pub tail: Option<u8>,
    /// Paths among the arguments: that of open and unlink; from and to of rename and link.
    pub paths: Vec<String>,
    /// Of a rename that was done: what it did. Boxed: there are many calls, and few of them are renames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<Box<Rename>>,
}

/// What a rename did, beyond what the program said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// The old path, from the root.
    pub from: String,
    /// The new one.
    pub to: String,
    /// The new name was that of another file, which is gone from there; None: not known.
    pub replaced: Option<bool>,
    /// Inode of the directory that the new name is in, which may have several paths; None: not known.
    pub directory: Option<u64>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A call: rare ones all; of reads and writes the first and last of each flow, failures, short ones, and
    /// the first after fork(2).
    Call(Call),
    /// fork(2), vfork(2) or clone(2) of a process, not of a thread.
    Fork {
        /// The child.
        child: u32,
    },
    /// execve(2) succeeded: the process's next image.
    Exec {
        /// Index in [`super::Process::images`].
        image: u32,
    },
    /// The process ended.
    Exit(Exit),
    /// A signal that ends the process was delivered.
    Signal {
        /// Which.
        number: i32,
    },
    /// A walker looked.
    Buffers {
        /// When.
        moment: Moment,
        /// What it found. Streams with nothing in them are there too.
        buffers: Vec<Buffer>,
        /// The system call that the main thread waited in (samples only).
        waits_in: Option<Op>,
        /// The same by its name, also where it is none of [`Op`]; empty: not known.
        waits_in_name: String,
        /// The open file behind the descriptor of each stream, where known.
        #[serde(default)]
        files: Vec<(i32, u32)>,
    },
    /// From here to `until_s` single calls were not seen, only totals.
    Unwatched {
        /// End of it.
        until_s: f64,
    },
}

/// Something that happened at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the recording began.
    pub at_s: f64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What.
    #[serde(rename = "what")]
    pub kind: EventKind,
}
