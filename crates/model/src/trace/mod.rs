//! What was seen of a program's input and output: the one form that every engine fills and every rule reads.
//!
//! All times are seconds since the recording began. Nothing here is a judgement.

mod buffer;
mod call_site;
pub mod document;
mod event;
mod mode;
mod other_calls;
mod pipeline;
mod prices;
mod stream_counts;
mod stream_table;
mod trace_stream;

pub use buffer::{Buffer, Moment, RuntimeId};
pub use call_site::{CallSite, Frame, WriteSite};
pub use document::{TraceDocument, TraceResult};
pub use event::{Call, Event, EventKind, Op, Rename};
pub use mode::{Modes, ObservedMode, mode_of_calls};
pub use other_calls::OtherCalls;
pub use pipeline::{Hop, PipeEnd, Pipeline};
pub use prices::Prices;
pub use stream_counts::{Histogram, StreamCounts};
pub use stream_table::{StreamTable, StreamTotals};
pub use trace_stream::{TraceStream, trace_streams};

use foldhash::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Direction, StreamKind};

/// Where the calls were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// In the kernel, by tracepoints.
    Ebpf,
    /// By stopping the program at its calls.
    Ptrace,
    /// From /proc only.
    Sample,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// exit(2) with this status.
    Code(i32),
    /// This signal.
    Signal(i32),
}

impl Exit {
    /// As wait(2) says it of one that has ended.
    pub fn of_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Code(status >> 8 & 0xff),
            signal => Self::Signal(signal),
        }
    }
}

/// What watching cost, and what it missed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Seconds until the program could start.
    pub startup_s: f64,
    /// Seconds in which the calls of the program were seen one by one.
    pub watched_s: f64,
    /// Seconds in which only totals were kept.
    pub unwatched_s: f64,
    /// Calls that a handler or a stop saw.
    pub seen_calls: u64,
    /// Events that found no room.
    pub lost_events: u64,
    /// Estimated seconds that watching added.
    pub cost_s: f64,
}

/// Bytes and calls as the kernel counts them for a process (/proc/PID/io), its reaped children left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoTotals {
    /// Calls that read.
    pub read_calls: u64,
    /// Calls that write.
    pub write_calls: u64,
    /// Bytes read by calls.
    pub read_bytes: u64,
    /// Bytes written by calls.
    pub written_bytes: u64,
}

impl IoTotals {
    /// What was added since.
    pub fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Both together. Where one is a difference that is less than nothing, as a wrapped number, so may the sum be.
    pub fn plus(self, more: Self) -> Self {
        self.with(more, u64::wrapping_add)
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            read_calls: of(self.read_calls, other.read_calls),
            write_calls: of(self.write_calls, other.write_calls),
            read_bytes: of(self.read_bytes, other.read_bytes),
            written_bytes: of(self.written_bytes, other.written_bytes),
        }
    }
}

/// What a process runs, from one execve(2) to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// When it began.
    pub started_s: f64,
    /// The executable.
    pub exe: String,
    /// Its name, as in /proc/PID/comm.
    pub comm: String,
    /// Its arguments, as far as known.
    pub argv: Vec<String>,
}

/// One process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent, if that was recorded as well.
    pub parent: Option<u32>,
    /// Images in order; there is always one. The first is what the process was when it began: of a forked child its
    /// parent's, of the command that weir starts the command itself.
    pub images: Vec<Image>,
    /// When it began, or the recording did.
    pub started_s: f64,
    /// When it ended; None: it was running at the end.
    pub ended_s: Option<f64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Processor time in user mode, seconds.
    pub user_s: f64,
    /// Processor time in the kernel, seconds.
    pub system_s: f64,
    /// How long it could have run and had no processor, because others had them, seconds; None: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_s: Option<f64>,
    /// What the kernel read from devices for it; None: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_bytes: Option<u64>,
    /// The kernel's own counts, where they could be read.
    pub io: Option<IoTotals>,
    /// Most threads it had at a time, as far as seen; 0: not known.
    pub threads: u32,
}

impl Process {
    /// The name of what it ran last.
    pub fn comm(&self) -> &str {
        self.images.last().map_or("?", |image| &image.comm)
    }

    /// What it ran at a time, with its number: the last that had begun by then. The first has no beginning but the
    /// process's own.
    pub fn image_at(&self, at_s: f64) -> Option<(usize, &Image)> {
        let number = self.images.iter().rposition(|image| image.started_s <= at_s).unwrap_or(0);
        self.images.get(number).map(|image| (number, image))
    }
}

/// One open file (open(2) says "open file description"): what fork(2) and dup(2) share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenFile {
    /// Index in [`Recording::files`].
    pub id: u32,
    /// Path, or what /proc/PID/fd shows of it (`pipe:[123]`).
    pub path: String,
    /// What it is.
    pub kind: StreamKind,
    /// Device number of the file system, 0 where not known.
    pub dev: u64,
    /// Inode number; with `dev` it is the same for two openings of one file.
    pub ino: u64,
    /// Flags of open(2) (O_APPEND, O_SYNC, O_DIRECT …).
    pub flags: i32,
    /// The process that opened it; None: it was open before.
    pub opened_by: Option<u32>,
    /// st_blksize; 0 where not known.
    pub block_bytes: u32,
    /// Size of a regular file when last looked at.
    pub size_bytes: Option<u64>,
    /// Capacity of a pipe, where known.
    pub pipe_bytes: Option<u64>,
    /// What O_DIRECT needs of addresses and of offsets and lengths (statx STATX_DIOALIGN).
    pub direct_align: Option<(u32, u32)>,
    /// The first opening of the same regular file, where that was by another name (a symbolic or hard link, a `..`): both
    /// names led to one inode when this one was opened. A number alone may be that of a file that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<u32>,
}

/// Everything that was seen of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The command, or empty when attached.
    pub command: Vec<String>,
    /// The process that was started or attached to.
    pub root: u32,
    /// Where the calls were seen.
    pub engine: BackendKind,
    /// Why this engine and no better one; empty when it is the best.
    pub engine_reason: String,
    /// Every call was counted.
    pub exact: bool,
    /// How long it lasted.
    pub elapsed_s: f64,
    /// How the command ended; None when it was left running.
    pub exit: Option<Exit>,
    /// What watching cost.
    pub overhead: Overhead,
    /// What could not be seen, in sentences.
    pub blind: Vec<String>,
    /// What calls and bytes cost here.
    pub prices: Prices,
    /// Processes in order of their beginning.
    pub processes: Vec<Process>,
    /// Open files by id.
    pub files: Vec<OpenFile>,
    /// Counters per process, image, descriptor, open file and direction.
    #[serde(rename = "flows")]
    pub counts: Vec<StreamCounts>,
    /// Rare things and the first and last calls of each flow, in order of time.
    pub events: Vec<Event>,
    /// Where programs wrote what was seen waiting in their buffers, as far as that is known.
    #[serde(rename = "wrote", default, skip_serializing_if = "Vec::is_empty")]
    pub write_sites: Vec<WriteSite>,
    /// Calls that move no bytes, by process, image and kind.
    #[serde(rename = "others", default, skip_serializing_if = "Vec::is_empty")]
    pub other_calls: Vec<OtherCalls>,
}

impl Recording {
    /// The process with this number.
    pub fn process(&self, pid: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.pid == pid)
    }

    /// All of them by their numbers, for who asks often; of several that had a number the first, as [`Self::process`].
    pub fn processes_by_pid(&self) -> HashMap<u32, &Process> {
        self.processes.iter().rev().map(|process| (process.pid, process)).collect()
    }

    /// What a process ran, by the number of its image.
    pub fn image(&self, pid: u32, number: u32) -> Option<&Image> {
        self.process(pid)?.images.get(number as usize)
    }

    /// The open file with this id.
    pub fn file(&self, id: u32) -> Option<&OpenFile> {
        self.files.get(id as usize)
    }

    /// The place that wrote last into a stream's buffer before this time, in seconds.
    pub fn write_site(&self, pid: u32, stream: u64, at_s: f64) -> Option<&CallSite> {
        self.write_sites.iter().find(|one| one.is_of(pid, stream, at_s)).map(|one| &one.call_site)
    }

    /// Whether somebody waited for a device often enough that it matters what a wait costs.
    pub fn waits_for_devices(&self) -> bool {
        const OFTEN: u64 = 10;
        self.counts.iter().any(|flow| {
            let in_writes = || self.file(flow.file).is_some_and(OpenFile::waits_for_device);
            flow.syncs >= OFTEN || flow.direction == Direction::Out && flow.calls >= OFTEN && in_writes()
        })
    }
}

impl OpenFile {
    /// It was opened in a way that makes the file where there is none, or empties it.
    pub fn is_made_by_opening(&self) -> bool {
        const O_CREAT_O_TRUNC: i32 = 0o100 | 0o1000;
        self.opened_by.is_some() && self.flags & O_CREAT_O_TRUNC != 0
    }

    /// Opened with O_DSYNC, which O_SYNC contains; the same bit on every architecture that weir is built for.
    pub fn waits_for_device(&self) -> bool {
        const O_DSYNC: i32 = 0o10000;
        self.flags & O_DSYNC != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_read_from_what_wait_says() {
        assert_eq!(Exit::of_status(3 << 8), Exit::Code(3));
        assert_eq!(Exit::of_status(9), Exit::Signal(9));
        assert_eq!(Exit::of_status(0x80 | 11), Exit::Signal(11), "with a core dump");
    }

    #[test]
    fn totals_are_added_and_taken_away_field_by_field() {
        let of = |read_calls, write_calls, read_bytes, written_bytes| IoTotals {
            read_calls,
            write_calls,
            read_bytes,
            written_bytes,
        };
        assert_eq!(of(5, 6, 7, 8).since(of(1, 2, 3, 9)), of(4, 4, 4, 0));
        assert_eq!(of(5, 6, 7, 8).plus(of(1, 2, 3, 4)), of(6, 8, 10, 12));
        assert_eq!(of(5, 0, 0, 0).plus(of(2u64.wrapping_neg(), 0, 0, 0)), of(3, 0, 0, 0));
    }

    #[test]
    fn an_image_begins_when_the_one_before_ends() {
        let image = |started_s: f64, comm: &str| Image { started_s, comm: comm.into(), ..Image::default() };
        let process = Process {
            images: vec![image(1.0, "sh"), image(2.0, "tr")],
            started_s: 1.0,
            ..Process::default()
        };
        let at = |at_s: f64| process.image_at(at_s).map(|(number, image)| (number, image.comm.as_str()));
        assert_eq!(at(1.9), Some((0, "sh")));
        assert_eq!(at(2.0), Some((1, "tr")));
        assert_eq!(at(9.0), Some((1, "tr")));
        assert_eq!(at(0.5), Some((0, "sh")), "what was seen before its beginning was told is its own");
        assert_eq!(Process::default().image_at(1.0), None);
    }
}
