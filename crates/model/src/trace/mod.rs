//! The recording of a program's input and output. Every backend produces it, every diagnosis rule reads it.
//!
//! Times are in seconds since the start of the recording. A recording has facts only, no conclusions; only
//! [`document`], the result of `weir trace`, has both.

mod buffer;
mod call_site;
pub mod document;
mod event;
mod exit;
mod finding_group;
mod mode;
mod open_file;
mod other_calls;
mod pipeline;
mod prices;
mod stream_counts;
mod stream_table;
mod stream_timeline;
mod trace_stream;
mod tracing_cost;
mod unreadable_buffers;

pub use crate::runtime::{Logger, RuntimeId, SourceLanguage};
pub use buffer::{Buffer, SnapshotMoment};
pub use call_site::{CallSite, Frame, SampledCall, WriteSite};
pub use document::{StreamRow, TraceDocument, TraceResult};
pub use event::{Call, Event, EventKind, FAILED_CALLS, FIRST_CALLS, HEAD_BYTES, IN_VFORK, Op, Rename};
pub use exit::{Exit, signal_name};
pub use finding_group::FindingGroup;
pub use mode::{ObservedMode, StreamModes, mode_of_calls};
pub use open_file::OpenFile;
pub use other_calls::OtherCalls;
pub use pipeline::{Hop, PipeEnd, Pipeline};
pub use prices::Prices;
pub use stream_counts::{Histogram, StreamCounts};
pub use stream_table::{StreamSum, StreamTable};
pub use stream_timeline::{StreamTimeline, TimelineBin, stream_timelines};
pub use trace_stream::{TraceStream, trace_streams};
pub use tracing_cost::TracingCost;
pub use unreadable_buffers::UnreadableBuffers;

use std::collections::BTreeMap;

use foldhash::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Direction, Untrusted};

/// The name of a program or a file that a recording does not have.
pub(crate) static UNKNOWN: Untrusted = Untrusted::placeholder("?");

/// Kind of trace backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// eBPF programs on the kernel's tracepoints.
    Ebpf,
    /// ptrace(2): stops the program at its calls.
    Ptrace,
    /// Periodic samples of /proc.
    Sample,
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Cost and gaps of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Seconds that the backend delayed the start of the program.
    pub startup_s: f64,
    /// Seconds inside of sampling windows, in which every call was recorded.
    #[serde(rename = "watched_s")]
    pub observed_s: f64,
    /// Seconds inside of gaps, of which only totals are known.
    #[serde(rename = "unwatched_s")]
    pub gap_s: f64,
    /// Calls that the backend handled.
    pub seen_calls: u64,
    /// Events dropped because a buffer was full.
    pub lost_events: u64,
    /// Calls of the observed processes that were not counted, at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted_calls: u64,
    /// Estimated seconds that recording the calls added to the run.
    pub cost_s: f64,
    /// Seconds for which the backend's stops delayed the processes, as far as it measured them.
    #[serde(default, skip_serializing_if = "is_none_s")]
    pub stopped_s: f64,
}

impl Overhead {
    /// Returns the seconds that tracing added to the run. A short program is stopped at its start and end for longer than at its
    /// calls, and `cost_s` has only the calls.
    pub fn total_s(&self) -> f64 {
        self.cost_s.max(self.stopped_s)
    }
}

/// Returns whether gaps of `gap_s` seconds within `all_s` seconds hide more than a few calls, so that the report names them: a part of
/// the time, or enough for the open, the sync and the rename of a file, however long the run.
pub fn gaps_hide_calls(gap_s: f64, all_s: f64) -> bool {
    const PART: f64 = 0.05;
    const SECONDS: f64 = 0.01;
    gap_s > SECONDS.min(PART * all_s)
}

fn is_none_s(seconds: &f64) -> bool {
    *seconds <= 0.0
}

/// The kernel's totals for a process (/proc/PID/io), without those of its reaped children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct IoTotals {
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes read by `read_calls`.
    pub read_bytes: u64,
    /// Bytes written by `write_calls`.
    pub written_bytes: u64,
}

impl IoTotals {
    /// Returns the differences to earlier totals; 0 where the earlier total is larger.
    pub fn since(self, before: Self) -> Self {
        self.combine(before, u64::saturating_sub)
    }

    /// Returns the sums, modulo 2^64: a negative difference is a wrapped number.
    pub fn plus(self, more: Self) -> Self {
        self.combine(more, u64::wrapping_add)
    }

    fn combine(self, other: Self, operation: fn(u64, u64) -> u64) -> Self {
        Self {
            read_calls: operation(self.read_calls, other.read_calls),
            write_calls: operation(self.write_calls, other.write_calls),
            read_bytes: operation(self.read_bytes, other.read_bytes),
            written_bytes: operation(self.written_bytes, other.written_bytes),
        }
    }
}

/// A program that a process runs, from one execve(2) to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Time of the execve(2), or the start of the process.
    pub started_s: f64,
    /// Path of the executable.
    pub exe: Untrusted,
    /// Name as in /proc/PID/comm.
    pub comm: Untrusted,
    /// Known arguments; may be shortened or empty.
    pub argv: Vec<Untrusted>,
    /// `argv` lacks its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub argv_cut: bool,
    /// Working directory at the execve(2), if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Untrusted>,
    /// Language of the program, from its runtime; `None` if the executable could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<SourceLanguage>,
    /// The library by which the program may write its log; `None` if no such library is known in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<Logger>,
}

/// A process of the recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Process {
    pub pid: u32,
    /// Parent, if it is in the recording too.
    pub parent: Option<u32>,
    /// Images in order, at least one. The first image of a forked child is its parent's; that of the command which weir
    /// starts is the command itself.
    pub images: Vec<Image>,
    /// Start of the process or of the recording.
    pub started_s: f64,
    /// Time of the exit; `None` if the process was running at the end of the recording.
    pub ended_s: Option<f64>,
    pub exit: Option<Exit>,
    /// CPU time in user mode, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub system_s: f64,
    /// Seconds in which the process was runnable but had no CPU; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_s: Option<f64>,
    /// Bytes that the kernel read from devices for the process; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_bytes: Option<u64>,
    /// The kernel's totals, if they could be read.
    pub io: Option<IoTotals>,
    /// Largest observed number of threads; 0 if unknown.
    pub threads: u32,
}

impl Process {
    /// Returns the name of the last image.
    pub fn comm(&self) -> &Untrusted {
        self.images.last().map_or(&UNKNOWN, |image| &image.comm)
    }

    /// Returns the image at a time and its index: the last image that started by then, else the first.
    pub fn image_at(&self, at_s: f64) -> Option<(usize, &Image)> {
        let number = self.images.iter().rposition(|image| image.started_s <= at_s).unwrap_or(0);
        self.images.get(number).map(|image| (number, image))
    }
}

/// The recording of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The command; empty after an attach.
    pub command: Vec<String>,
    /// Process that weir started or attached to.
    pub root: u32,
    /// Backend that made the recording.
    #[serde(rename = "engine")]
    pub backend: BackendKind,
    /// Why a better backend was not used; empty for the best one.
    #[serde(rename = "engine_reason")]
    pub backend_reason: String,
    /// Every call was counted.
    pub exact: bool,
    /// Duration of the recording.
    pub elapsed_s: f64,
    /// Exit of the command; `None` if it was still running.
    pub exit: Option<Exit>,
    /// Cost and gaps of the recording.
    pub overhead: Overhead,
    /// Sentences about events that the recording lacks, and about other limits.
    pub blind: Vec<String>,
    /// A sentence of `blind` says that a process, calls or buffers were not recorded. Calls in gaps do not count, nor do the buffers
    /// of `unreadable`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Buffers that could not be read, so that bytes may be pending there unseen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableBuffers>,
    /// Prices of calls and bytes on this machine.
    pub prices: Prices,
    /// Processes by start time.
    pub processes: Vec<Process>,
    /// Open files by id.
    pub files: Vec<OpenFile>,
    /// Device numbers of the file systems in memory (tmpfs, ramfs) that weir sees at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_devices: Vec<u64>,
    /// Counts by process, image, descriptor, open file and direction.
    #[serde(rename = "flows")]
    pub counts: Vec<StreamCounts>,
    /// Rare events, and the first and last calls of each stream, by time.
    pub events: Vec<Event>,
    /// Known call sites that wrote pending bytes.
    #[serde(rename = "wrote", default, skip_serializing_if = "Vec::is_empty")]
    pub write_sites: Vec<WriteSite>,
    /// Samples of small reads and writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled_calls: Vec<SampledCall>,
    /// Machine and settings, by name; empty if no document was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Calls that move no bytes, by process, image and system call.
    #[serde(rename = "others", default, skip_serializing_if = "Vec::is_empty")]
    pub other_calls: Vec<OtherCalls>,
}

impl Recording {
    /// Returns the process with this PID; the first one if the PID was reused.
    pub fn process(&self, pid: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.pid == pid)
    }

    /// Returns an index of the processes for frequent lookups; equal to [`Self::process`] for a reused PID.
    pub fn processes_by_pid(&self) -> HashMap<u32, &Process> {
        self.processes.iter().rev().map(|process| (process.pid, process)).collect()
    }

    /// Returns an image of a process by its index.
    pub fn image(&self, pid: u32, number: u32) -> Option<&Image> {
        self.process(pid)?.images.get(number as usize)
    }

    /// Returns the open file with this id.
    pub fn file(&self, id: u32) -> Option<&OpenFile> {
        self.files.get(id as usize)
    }

    /// Returns the call site of the last write into a stream's buffer before `at_s`. `stream` is a
    /// [`Buffer::address`].
    pub fn write_site(&self, pid: u32, stream: u64, at_s: f64) -> Option<&CallSite> {
        self.write_sites.iter().find(|one| one.is_of(pid, stream, at_s)).map(|one| &one.call_site)
    }

    /// Returns whether waits for a device that were not measured are frequent enough for their price to matter.
    pub fn waits_for_devices(&self) -> bool {
        const OFTEN: u64 = 10;
        self.counts.iter().any(|counts| {
            let in_writes = || self.file(counts.file).is_some_and(OpenFile::waits_for_device);
            let writes = counts.direction == Direction::Out && counts.calls >= OFTEN;
            counts.syncs >= OFTEN && !counts.has_timed_syncs()
                || writes && counts.wait_s.is_none() && in_writes()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_decoded_from_a_wait_status() {
        assert_eq!(Exit::of_status(3 << 8), Exit::Code(3));
        assert_eq!(Exit::of_status(9), Exit::Signal(9));
        assert_eq!(Exit::of_status(0x80 | 11), Exit::Signal(11), "with a core dump");
    }

    #[test]
    fn totals_are_added_and_subtracted_by_field() {
        let totals = |read_calls, write_calls, read_bytes, written_bytes| IoTotals {
            read_calls,
            write_calls,
            read_bytes,
            written_bytes,
        };
        assert_eq!(totals(5, 6, 7, 8).since(totals(1, 2, 3, 9)), totals(4, 4, 4, 0));
        assert_eq!(totals(5, 6, 7, 8).plus(totals(1, 2, 3, 4)), totals(6, 8, 10, 12));
        assert_eq!(totals(5, 0, 0, 0).plus(totals(2u64.wrapping_neg(), 0, 0, 0)), totals(3, 0, 0, 0));
    }

    #[test]
    fn an_image_starts_when_the_previous_one_ends() {
        let image = |started_s: f64, comm: &str| Image { started_s, comm: comm.into(), ..Image::default() };
        let process = Process {
            images: vec![image(1.0, "sh"), image(2.0, "tr")],
            started_s: 1.0,
            ..Process::default()
        };
        let at = |at_s: f64| process.image_at(at_s).map(|(number, image)| (number, image.comm.exact()));
        assert_eq!(at(1.9), Some((0, "sh")));
        assert_eq!(at(2.0), Some((1, "tr")));
        assert_eq!(at(9.0), Some((1, "tr")));
        assert_eq!(at(0.5), Some((0, "sh")), "events before the first start belong to the first image");
        assert_eq!(Process::default().image_at(1.0), None);
    }
}
