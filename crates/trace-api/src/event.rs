//! What an engine says, before the assembler makes a recording of it.
//!
//! An engine reports in order of time for each process. Descriptors are numbers here: the assembler keeps
//! the tables of open files by following open, dup, fork, exec and close.

use weir_model::trace::{Buffer, Exit, IoTotals, Op, OpenFile, SnapshotMoment, StreamCounts};
use weir_sys::open_files;
use weir_sys::proc::ResourceUsage;

/// One report.
#[derive(Debug, Clone)]
pub struct RawEvent {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub ns: u64,
    /// The process (thread group).
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What.
    pub kind: RawEventKind,
}

/// What is reported.
#[derive(Debug, Clone)]
pub enum RawEventKind {
    /// A system call that returned.
    Call(RawCall),
    /// Counters of a descriptor since they were last reported, when it is closed or the process ends.
    Counts(Box<RawCounts>),
    /// A process was there when the recording began, or was started by weir: its descriptors are in /proc.
    Begin,
    /// What is behind a descriptor: said before the first report that it matters to.
    File {
        /// The descriptor.
        fd: i32,
        /// The open file.
        file: RawFile,
        /// The last part of its path, or the beginning of that; empty: not known.
        name: String,
    },
    /// A new process; its descriptors are copies of the parent's (all of them shared if `shares_files`).
    Fork {
        /// The child.
        child: u32,
        /// CLONE_FILES.
        shares_files: bool,
    },
    /// execve(2) succeeded.
    Exec {
        /// The executable, as /proc/PID/exe has it.
        exe: String,
        /// Its name.
        comm: String,
        /// Its arguments, as far as known.
        argv: Vec<String>,
    },
    /// The process ended.
    Exit {
        /// How.
        exit: Exit,
        /// The kernel's counts, its own only.
        io: Option<IoTotals>,
        /// What it needed.
        spent: ResourceUsage,
    },
    /// A signal that ends the process.
    Signal {
        /// Which.
        number: i32,
    },
    /// A walker looked.
    Buffers {
        /// When.
        moment: SnapshotMoment,
        /// What it found.
        buffers: Vec<Buffer>,
        /// What the main thread waits in, by its system call's name; empty: nothing, or not known.
        waits_in: String,
        /// What was behind the descriptors of streams then, as far as that was looked up.
        behind: Vec<(i32, OpenFile)>,
    },
    /// From `ns` to `until_ns` the calls of this process (0: of all) were not seen.
    Gap {
        /// CLOCK_MONOTONIC, nanoseconds.
        until_ns: u64,
    },
    /// The calls of this process are not seen from here on, or are seen again, after all that was seen of it was reported;
    /// a process that was born meanwhile has an end of it only. At both ends it may be looked at in /proc.
    GapEdge {
        /// The kernel's counts, its own only, as those of its end will be.
        totals: IoTotals,
        /// It is over.
        ends: bool,
    },
    /// A moment in such a pause: what the process has open now may be looked up in /proc. It runs meanwhile.
    FdSnapshot,
    /// The kernel's counts of a process at this moment (not only at its end).
    Totals(IoTotals),
}

/// A system call.
#[derive(Debug, Clone)]
pub struct RawCall {
    /// Which.
    pub op: Op,
    /// Its arguments.
    pub args: [u64; 6],
    /// What it returned; -errno.
    pub result: i64,
    /// It is in a later [`RawCounts`] already: the assembler does not count it again.
    pub counted: bool,
    /// Bytes asked for, where the arguments alone do not say (vectors).
    pub asked: Option<u64>,
    /// The first bytes of what was written (at most 64).
    pub head: Vec<u8>,
    /// The last byte of what was written.
    pub tail: Option<u8>,
    /// Paths among the arguments, as the program gave them; relative ones against its directory.
    pub paths: Vec<String>,
    /// Where the process stands, from where a relative one begins; None: the engine does not follow that.
    pub directory: Option<WorkingDirectory>,
    /// Where the file stood before the call, where known.
    pub position: Option<u64>,
    /// The call began no sooner, CLOCK_MONOTONIC, nanoseconds; said of those that wait for a device.
    pub began_ns: Option<u64>,
    /// Of a rename: whether there was a file of the new name, if the engine knows it.
    pub replaced: Option<bool>,
}

impl RawCall {
    /// A call of which nothing else is known.
    pub fn new(op: Op, args: [u64; 6], result: i64) -> Self {
        Self {
            op,
            args,
            result,
            counted: false,
            asked: None,
            head: Vec::new(),
            tail: None,
            paths: Vec::new(),
            directory: None,
            position: None,
            began_ns: None,
            replaced: None,
        }
    }
}

/// In which directory a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkingDirectory {
    /// Where it stood at its last call with a relative path; if that is its first, where its parent stood then.
    AsBefore,
    /// It has moved since.
    Elsewhere,
}

/// An open file as the kernel has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RawFile {
    /// The same number is the same open file, as long as it is open.
    pub key: u64,
    /// As stat(2) has it.
    pub dev: u64,
    pub ino: u64,
    /// st_mode.
    pub mode: u32,
    /// Flags of open(2).
    pub flags: i32,
    pub size_bytes: u64,
    pub block_bytes: u32,
    pub pipe_bytes: Option<u64>,
}

/// Counters of one direction of one descriptor.
#[derive(Debug, Clone)]
pub struct RawCounts {
    /// The counters themselves. Which image and file they are of is the assembler's to say, and it knows the time.
    pub flow: StreamCounts,
    /// The first and the last call: CLOCK_MONOTONIC, nanoseconds.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
    /// Calls of lseek(2) among `flow.seeks` that were not told as calls.
    pub untold_seeks: u64,
    /// The last lseek(2), if it was not told as a call: when, and to where.
    pub untold_seek: Option<(u64, u64)>,
}

impl RawEventKind {
    /// A look at a process that stands still or sleeps: what its descriptors are is looked up now.
    pub fn buffers(pid: u32, moment: SnapshotMoment, buffers: Vec<Buffer>, waits_in: String) -> Self {
        let behind = open_files::streams(pid, &buffers);
        Self::Buffers { moment, buffers, waits_in, behind }
    }
}

/// Receives the events. The ptrace backend calls it from a thread of its own, hence Send.
pub type EventSink<'a> = dyn FnMut(RawEvent) + Send + 'a;
