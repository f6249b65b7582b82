//! The document that `weir trace --json` writes (schema weir-trace/1).
//!
//! docs/schemas/weir-trace-1.schema.json defines the names of the fields. Times are in seconds, sizes in bytes.

use std::collections::BTreeMap;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::{
    BackendKind, Exit, Histogram, OtherCalls, Overhead, Pipeline, Prices, Process, Recording, StreamTable,
    StreamTimeline, TraceStream, UNKNOWN, UnreadableBuffers, stream_timelines, trace_streams,
};
use crate::{Direction, Finding, Mode, StreamKind, Untrusted, errno};

/// Value of [`TraceDocument::schema`].
pub const SCHEMA: &str = "weir-trace/1";

/// A recording with the conclusions drawn from it: the input of the screen and of the document.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct TraceResult<'a> {
    pub recording: &'a Recording,
    /// Problems found in the recording.
    pub findings: &'a [Finding],
    /// The findings in one or two sentences. Each sentence and each command has a line of its own. Empty without findings.
    pub verdict: String,
    /// Processes that pipes connect.
    pub pipelines: &'a [Pipeline],
    /// Streams of the recording, as [`trace_streams`] returns them.
    pub streams: Vec<TraceStream<'a>>,
}

impl<'a> TraceResult<'a> {
    /// Makes the result with the streams of the recording.
    pub fn new(
        recording: &'a Recording,
        findings: &'a [Finding],
        verdict: impl Into<String>,
        pipelines: &'a [Pipeline],
    ) -> Self {
        let streams = trace_streams(&StreamTable::of(recording));
        Self { recording, findings, verdict: verdict.into(), pipelines, streams }
    }
}

/// One run of `weir trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command; empty after an attach.
    pub command: Vec<String>,
    /// Backend that recorded the run.
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
    /// The first lines of the screen; empty without findings.
    pub verdict: String,
    /// One row for each process, program, descriptor, path and direction.
    pub streams: Vec<StreamRow>,
    /// Calls and pending bytes over time, for the streams with the most calls; empty in the documents of older versions.
    #[serde(default)]
    pub timeline: Vec<StreamTimeline>,
    /// Calls that move no bytes.
    pub other_calls: Vec<OtherCallsRow>,
    /// Problems found in the recording.
    pub findings: Vec<Finding>,
    /// Processes that pipes connect.
    pub pipelines: Vec<Pipeline>,
    /// Processes by start time.
    pub processes: Vec<Process>,
    /// Sentences about events that the recording lacks.
    pub blind: Vec<String>,
    /// Buffers that could not be read, so that bytes may be pending there unseen.
    #[serde(default)]
    pub unreadable: Vec<UnreadableBuffers>,
    /// Prices of calls and bytes on this machine.
    pub prices: Prices,
    /// Machine and settings, by name; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// A [`TraceStream`] in the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct StreamRow {
    pub pid: u32,
    pub comm: Untrusted,
    /// Index of the program in [`Process::images`]; `None` in the documents of older versions.
    #[serde(default)]
    pub image: Option<u32>,
    pub fd: i32,
    /// Path by which the program opened the file first.
    pub path: Untrusted,
    /// Other paths by which the run opened the same file.
    pub also: Vec<Untrusted>,
    /// Identity of the file; `None` if unknown.
    pub inode: Option<InodeId>,
    /// Number of open files behind the stream: opened by the program or inherited.
    pub openings: u64,
    pub kind: StreamKind,
    pub direction: Direction,
    /// Calls that moved bytes, returned 0 or failed.
    pub calls: u64,
    pub bytes: u64,
    /// Number of calls by bytes moved; the key is the smallest size of each power of two.
    pub sizes: BTreeMap<u64, u64>,
    /// Typical bytes of a call: the mean if it lies in the same power of two as the median, otherwise the smallest size of the
    /// median's power of two; `None` if no call moved bytes.
    pub typical_bytes: Option<u64>,
    /// Buffering mode; `None` if unknown.
    pub mode: Option<Mode>,
    /// A buffer walker read the mode; otherwise it is deduced from the calls.
    pub mode_seen: bool,
    /// Size of the user-space buffer, if a buffer walker read it.
    pub buffer_bytes: Option<u64>,
    /// Cost of the calls by [`TraceDocument::prices`] and by measured waits, at most the CPU time and idle time of the process.
    pub cost_s: f64,
    /// `cost_s` as a share of the run, 0 to 1.
    pub share: f64,
    /// `sizes` counts every call; otherwise it is sampled.
    pub exact: bool,
    /// `calls` and `bytes` are shares of a total that the kernel counted for several streams.
    pub estimated: bool,
    /// Calls of the unknown stream of the same process and direction may belong to this stream too. Absent in the documents
    /// of older versions.
    #[serde(default)]
    pub at_least: bool,
    /// Failed calls, without EAGAIN and EINTR.
    pub errors: u64,
    /// Calls that returned EAGAIN or EINTR.
    pub again: u64,
    /// Calls that requested bytes and returned 0.
    pub zeros: u64,
    /// Calls that moved fewer bytes than requested, but at least one.
    pub short: u64,
    /// Calls that copied inside the kernel: sendfile(2), splice(2), copy_file_range(2) …
    pub in_kernel: u64,
    /// Calls of fsync(2), fdatasync(2), sync_file_range(2) and msync(2).
    pub syncs: u64,
    /// lseek(2) calls that changed the offset.
    pub seeks: u64,
    /// Seconds for which calls blocked; `None` if the backend does not measure it.
    #[serde(default)]
    pub wait_s: Option<f64>,
}

/// Identity of a file: equal for two streams of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InodeId {
    /// Device number (st_dev).
    pub dev: u64,
    /// Inode number (st_ino).
    pub ino: u64,
}

/// An [`OtherCalls`] in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct OtherCallsRow {
    pub pid: u32,
    pub comm: Untrusted,
    /// Name of the system call.
    pub call: String,
    pub calls: u64,
    pub failed: u64,
    /// Failed calls by the name of the error.
    pub errors: BTreeMap<String, u64>,
    /// Operations submitted by io_uring_enter(2) and io_submit(2); no stream has their bytes.
    #[serde(default)]
    pub submitted: u64,
    /// Every call was counted.
    pub exact: bool,
}

impl TraceDocument {
    /// Makes the document of a result.
    pub fn new(result: &TraceResult) -> Self {
        Self { streams: result.streams.iter().map(StreamRow::new).collect(), ..Self::without_streams(result) }
    }

    /// Makes the document with an empty list of streams, for a caller that writes the list itself.
    pub fn without_streams(result: &TraceResult) -> Self {
        let recording = result.recording;
        let processes = recording.processes_by_pid();
        let other_calls = recording.other_calls.iter().map(|one| OtherCallsRow::new(&processes, one));
        Self {
            schema: SCHEMA.into(),
            command: recording.command.clone(),
            backend: recording.backend,
            backend_reason: recording.backend_reason.clone(),
            exact: recording.exact,
            elapsed_s: recording.elapsed_s,
            exit: recording.exit,
            overhead: recording.overhead.clone(),
            verdict: result.verdict.clone(),
            streams: Vec::new(),
            timeline: stream_timelines(recording, &result.streams),
            other_calls: other_calls.collect(),
            findings: result.findings.to_vec(),
            pipelines: result.pipelines.to_vec(),
            processes: recording.processes.clone(),
            blind: recording.blind.clone(),
            unreadable: recording.unreadable.clone(),
            prices: recording.prices,
            environment: recording.environment.clone(),
        }
    }
}

impl StreamRow {
    /// Makes the row of a stream.
    pub fn new(stream: &TraceStream) -> Self {
        let counts = &stream.counts;
        Self {
            pid: counts.pid,
            comm: stream.comm.clone(),
            image: Some(counts.image),
            fd: counts.fd,
            path: stream.path.clone(),
            also: stream.also.iter().copied().cloned().collect(),
            inode: stream.inode.map(|(dev, ino)| InodeId { dev, ino }),
            openings: stream.openings.len() as u64,
            kind: stream.kind,
            direction: counts.direction,
            calls: counts.calls,
            bytes: counts.bytes,
            sizes: by_size(&counts.sizes),
            typical_bytes: stream.typical_bytes(),
            mode: stream.mode.map(|observed| observed.mode),
            mode_seen: stream.mode.is_some_and(|observed| observed.walked),
            buffer_bytes: stream.mode.and_then(|observed| observed.buffer_bytes),
            cost_s: stream.cost_s,
            share: stream.share,
            exact: counts.exact,
            estimated: counts.estimated,
            at_least: counts.at_least,
            errors: counts.errors,
            again: counts.again,
            zeros: counts.zeros,
            short: counts.short,
            in_kernel: counts.in_kernel,
            syncs: counts.syncs,
            seeks: counts.seeks,
            wait_s: counts.wait_s,
        }
    }
}

impl OtherCallsRow {
    fn new(processes: &HashMap<u32, &Process>, calls: &OtherCalls) -> Self {
        let image = processes.get(&calls.pid).and_then(|process| process.images.get(calls.image as usize));
        let named = |(&number, &count): (&i32, &u64)| (errno::name_or_number(number), count);
        Self {
            pid: calls.pid,
            comm: image.map_or(&UNKNOWN, |image| &image.comm).clone(),
            call: calls.op.name().into(),
            calls: calls.calls,
            failed: calls.failed(),
            errors: calls.errors.iter().map(named).collect(),
            submitted: calls.submitted,
            exact: calls.exact,
        }
    }
}

/// Returns the used slots of a histogram, keyed by their smallest size.
fn by_size(sizes: &Histogram) -> BTreeMap<u64, u64> {
    let used = sizes.0.iter().enumerate().filter(|(_, count)| **count > 0);
    used.map(|(slot, &count)| (Histogram::floor(slot), count)).collect()
}
