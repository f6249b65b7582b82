//! The parts of a recording that the recorder builds from raw events. The caller adds command, backend and
//! overhead.

use std::collections::BTreeMap;

use weir_model::Untrusted;
use weir_model::trace::{Event, OpenFile, OtherCalls, Process};

/// The result of [`crate::Recorder::finish`].
#[derive(Debug, Default)]
pub struct RecorderOutput {
    /// In the order of their start.
    pub processes: Vec<Process>,
    /// Indexed by [`OpenFile::id`].
    pub files: Vec<OpenFile>,
    /// The descriptors of each process that a signal ended, at its end, with their open files; by PID.
    pub open_at_kill: BTreeMap<u32, Vec<(i32, u32)>>,
    /// Counters per process, image, descriptor and direction.
    pub streams: Vec<weir_model::trace::StreamCounts>,
    /// Counts of the calls that move no bytes.
    pub other_calls: Vec<OtherCalls>,
    /// Events in order of time.
    pub events: Vec<Event>,
    /// Number of events above the limit of a recording.
    pub dropped_events: u64,
    /// The directory that contains nearly all files that were open only within sampling gaps.
    pub snapshot_directory: Option<Untrusted>,
    /// The program submitted operations to io_uring(7) or aio, whose bytes are in no stream.
    pub submits: bool,
    /// Sentences for the report about bytes that are in no stream.
    pub untracked_transfers: Vec<String>,
    /// Sentences for the report about descriptors that were not read when tracing began.
    pub unread_descriptors: Vec<String>,
}
