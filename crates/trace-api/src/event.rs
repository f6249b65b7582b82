//! Raw events: what a backend emits and the recorder turns into a recording.
//!
//! A backend emits the events of each process in order of time. Descriptors are numbers here: the recorder keeps the
//! tables of open files by following open, dup, fork, exec and close.

use weir_model::Untrusted;
use weir_model::trace::{Buffer, Exit, IoTotals, Op, OpenFile, SnapshotMoment, StreamCounts};
use weir_sys::open_files;
use weir_sys::proc::ResourceUsage;

/// One event of a backend.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct RawEvent {
    /// The time by CLOCK_MONOTONIC, in nanoseconds.
    pub ns: u64,
    /// The thread group ID.
    pub pid: u32,
    pub tid: u32,
    pub kind: RawEventKind,
}

/// A backend may cut the arguments of an [`RawEventKind::Exec`] after this many bytes, with a NUL after each.
pub const MAX_ARGUMENT_BYTES: usize = 248;

/// The kinds of events. The process and thread are those of the [`RawEvent`].
#[derive(Debug, Clone)]
pub enum RawEventKind {
    /// A system call returned.
    Call(RawCall),
    /// The counters of a descriptor since their last event. Emitted when the descriptor is closed or the process ends.
    Counts(Box<RawCounts>),
    /// The process existed when the recording began, or weir started it. The recorder reads its descriptors from /proc.
    Begin,
    /// The open file of a descriptor. Emitted before the first event that refers to it.
    #[allow(missing_docs)]
    File {
        fd: i32,
        file: RawFile,
        /// The last component of the path, possibly truncated; empty if unknown.
        name: Untrusted,
    },
    /// The working directory, if it differs from the one that was reported last, or from that of the parent process at its fork.
    /// A backend that emits it does so before the first call with a relative path and before an execve(2) in that directory.
    Directory(WorkingDirectory),
    /// The process created a child process. The child's descriptor table is a copy of the parent's.
    Fork {
        /// The PID of the child.
        child: u32,
        /// CLONE_FILES: parent and child share one descriptor table.
        shares_files: bool,
    },
    /// execve(2) succeeded.
    Exec {
        /// The path of the executable, as /proc/PID/exe shows it.
        exe: Untrusted,
        /// The process name, as /proc/PID/comm shows it.
        comm: Untrusted,
        /// The arguments, as far as known.
        argv: Vec<Untrusted>,
    },
    /// The process has exited or was killed.
    #[allow(missing_docs)]
    Exit {
        exit: Exit,
        /// The kernel's I/O counters without those of reaped children; None if they could not be read.
        io: Option<IoTotals>,
        usage: ResourceUsage,
    },
    /// The process is about to be killed by a signal.
    #[allow(missing_docs)]
    Signal { number: i32 },
    /// A snapshot of the user-space buffers of the process.
    #[allow(missing_docs)]
    Buffers {
        moment: SnapshotMoment,
        buffers: Vec<Buffer>,
        /// The system call in which the main thread blocks; empty if it runs, or if the call is unknown.
        blocked_in: String,
        /// The open files of the buffers' descriptors at the time of the snapshot, as far as they were looked up.
        open_files: Vec<(i32, OpenFile)>,
        /// When the memory had been read, by CLOCK_MONOTONIC, if the process was not stopped for it.
        read_until_ns: Option<u64>,
    },
    /// The process could not be stopped, because it had ended or has another tracer: the buffers at its end were not read.
    Unstopped,
    /// A thread of the process called fork(2) and could not be stopped there: the buffers at this fork were not read.
    UnstoppedFork,
    /// The calls of this process (0: of all) between `ns` and `until_ns` were not recorded.
    Gap {
        /// The end of the gap by CLOCK_MONOTONIC, in nanoseconds.
        until_ns: u64,
    },
    /// A sampling gap begins or ends here. A process that was created inside a gap has only its end. The recorder may
    /// read the process in /proc at both edges.
    GapEdge {
        /// The kernel's I/O counters without those of reaped children.
        totals: IoTotals,
        /// True at the end of the gap.
        ends: bool,
    },
    /// A moment inside a gap at which the recorder may read the descriptors in /proc. The process keeps running.
    FdSnapshot,
    /// The kernel's I/O counters of the process at this moment. Also emitted before the process ends.
    Totals(IoTotals),
}

/// One system call that returned.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct RawCall {
    pub op: Op,
    pub args: [u64; 6],
    /// The return value; a negative errno on failure. If the return value of a receive or send is not the number of bytes that
    /// the call moved (sendmmsg, MSG_TRUNC), that number.
    pub result: i64,
    /// A later [`RawCounts`] includes this call, so the recorder does not count it.
    pub counted: bool,
    /// The requested number of bytes, if the arguments do not contain it (vectors).
    pub requested_bytes: Option<u64>,
    /// The first bytes that were read or written, at most 64. For pipe(2) and socketpair(2): the two descriptors.
    pub head: Vec<u8>,
    /// The last byte that was written.
    pub tail: Option<u8>,
    /// The paths among the arguments, as the program passed them. Relative ones start at its working directory.
    pub paths: Vec<Untrusted>,
    /// The file offset before the call, if known.
    pub position: Option<u64>,
    /// A lower bound of the call's start, or the time since which it blocked (CLOCK_MONOTONIC, nanoseconds). Set for calls
    /// that wait for a device.
    pub began_ns: Option<u64>,
    /// The time for which a call that moves bytes blocked, if the backend measured it.
    pub blocked_ns: Option<u64>,
    /// For a rename: whether the new name existed before; None if unknown.
    pub replaced: Option<bool>,
}

impl RawCall {
    /// Returns a call with all optional fields empty.
    pub fn new(op: Op, args: [u64; 6], result: i64) -> Self {
        Self {
            op,
            args,
            result,
            counted: false,
            requested_bytes: None,
            head: Vec::new(),
            tail: None,
            paths: Vec::new(),
            position: None,
            began_ns: None,
            blocked_ns: None,
            replaced: None,
        }
    }
}

/// The working directory of a process as the kernel describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkingDirectory {
    /// Device of its super block, in the encoding of stat(2). On btrfs and overlayfs stat(2) reports another one.
    pub dev: u64,
    /// Inode number on that device.
    pub ino: u64,
    /// Its path in the mount namespace of the process; None if it is too long.
    pub path: Option<Untrusted>,
}

/// An open file as the kernel describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RawFile {
    /// Identifies the open file for as long as it is open.
    pub key: u64,
    /// The device number in the encoding of stat(2).
    pub dev: u64,
    pub ino: u64,
    /// File type and permissions (st_mode).
    pub mode: u32,
    /// The flags of open(2).
    pub flags: i32,
    pub size_bytes: u64,
    pub block_bytes: u32,
    /// The capacity of a pipe; None for other files.
    pub pipe_bytes: Option<u64>,
}

/// The counters of one descriptor in one direction.
#[derive(Debug, Clone)]
pub struct RawCounts {
    /// The counters. The recorder fills in image, open file and times.
    pub counts: StreamCounts,
    /// The first counted call: CLOCK_MONOTONIC, nanoseconds.
    pub first_ns: u64,
    /// The last counted call: CLOCK_MONOTONIC, nanoseconds.
    pub last_ns: u64,
    /// Calls of lseek(2) among `counts.seeks` that were not emitted as [`RawCall`]s.
    pub unreported_seeks: u64,
    /// Time and resulting offset of the last lseek(2), if it was not emitted as a [`RawCall`].
    pub last_unreported_seek: Option<(u64, u64)>,
}

impl RawEventKind {
    /// Returns a buffer snapshot with the open files of its buffers, which are read from /proc now. The process must be
    /// stopped or blocked, because a running process may reuse descriptor numbers.
    pub fn buffers(pid: u32, moment: SnapshotMoment, buffers: Vec<Buffer>, blocked_in: String) -> Self {
        let open_files = open_files::of_buffers(pid, &buffers);
        Self::Buffers { moment, buffers, blocked_in, open_files, read_until_ns: None }
    }

    /// Returns a buffer snapshot of a process that was not stopped, whose memory had been read at a time by CLOCK_MONOTONIC.
    pub fn read_until(mut self, ns: u64) -> Self {
        if let Self::Buffers { read_until_ns, .. } = &mut self {
            *read_until_ns = Some(ns);
        }
        self
    }
}

/// Receives the events. A backend may call it on a thread of its own, hence `Send`.
pub type EventSink<'a> = dyn FnMut(RawEvent) + Send + 'a;
