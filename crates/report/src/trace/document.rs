//! What `weir trace --json` writes: schema weir-trace/1, described in docs/schemas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::trace::{self, BackendKind, Exit, Histogram, Overhead, Prices, Process, Recording};
use weir_model::{Direction, Finding, Mode, StreamKind};

use super::streams;
use super::words::error;
use super::{Pipeline, Trace};

/// The name of the schema.
pub const SCHEMA: &str = "weir-trace/1";

/// A run of `weir trace`. Times are seconds, sizes bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command; empty when attached.
    pub command: Vec<String>,
    /// Where the calls were seen.
    pub engine: BackendKind,
    /// Why this engine and no better one; empty: it is the best.
    pub engine_reason: String,
    /// Every call was counted.
    pub exact: bool,
    /// How long it lasted.
    pub elapsed_s: f64,
    /// How the command ended; None: it was left running.
    pub exit: Option<Exit>,
    /// What watching cost and missed.
    pub overhead: Overhead,
    /// The verdict, as the screen begins with it; empty: nothing is wrong.
    pub verdict: String,
    /// One for each process, descriptor, path and direction.
    pub streams: Vec<Stream>,
    /// Calls that move no bytes, by process, program and kind.
    pub other_calls: Vec<OtherCalls>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Who wrote into whom.
    pub pipelines: Vec<Pipeline>,
    /// The processes in order of their beginning.
    pub processes: Vec<Process>,
    /// What could not be seen.
    pub blind: Vec<String>,
    /// What calls and bytes cost here.
    pub prices: Prices,
}

/// One stream of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub comm: String,
    /// The descriptor.
    pub fd: i32,
    /// Where it leads, as the program named it first.
    pub path: String,
    /// Other names by which the same file was opened in this run.
    pub also: Vec<String>,
    /// Device and inode of what is there, the same for two streams of one file; None: not known.
    pub inode: Option<Inode>,
    /// Open files: how often this stream was opened, or inherited.
    pub openings: u64,
    /// What is there.
    pub kind: StreamKind,
    /// Which way.
    pub direction: Direction,
    /// Calls that moved bytes, ended at the end of the file or failed.
    pub calls: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Calls by what they moved, keyed by the least size of each power of two.
    pub sizes: BTreeMap<u64, u64>,
    /// What a call in the middle of all moved; None: no call moved anything.
    pub typical_bytes: Option<u64>,
    /// How it is buffered; None: nothing tells.
    pub mode: Option<Mode>,
    /// The mode was seen in the program's memory, not deduced from its calls.
    pub mode_seen: bool,
    /// Size of the user-space buffer, where it was seen.
    pub buffer_bytes: Option<u64>,
    /// What its calls cost by `prices`.
    pub cost_s: f64,
    /// The same as a part of `elapsed_s`, at most 1.
    pub share: f64,
    /// The sizes are of all calls, not of samples.
    pub exact: bool,
    /// Not even `calls` and `bytes` are exact: a share of what the kernel counted for several streams together.
    pub estimated: bool,
    /// Calls that failed, EAGAIN and EINTR left out.
    pub errors: u64,
    /// Calls that returned EAGAIN or EINTR.
    pub again: u64,
    /// Calls that returned 0.
    pub zeros: u64,
    /// Calls that moved less than was asked.
    pub short: u64,
    /// Calls that the kernel copied by itself.
    pub in_kernel: u64,
    /// Calls of the fsync(2) family.
    pub syncs: u64,
    /// Calls of lseek(2) that moved.
    pub seeks: u64,
}

/// A file by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    /// The file system.
    pub dev: u64,
    /// The file in it.
    pub ino: u64,
}

/// Calls of one kind that one program made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCalls {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub comm: String,
    /// The system call.
    pub call: String,
    /// How often it was made, as far as it was seen.
    pub calls: u64,
    /// How often it failed.
    pub failed: u64,
    /// The same by the name of the error.
    pub errors: BTreeMap<String, u64>,
    /// Operations that they handed to the kernel (io_uring_enter, io_submit); their bytes are in no stream.
    #[serde(default)]
    pub submitted: u64,
    /// Every one was seen.
    pub exact: bool,
}

/// The document of a run.
pub fn document(trace: &Trace) -> Document {
    Document { streams: trace.streams.iter().map(stream).collect(), ..without_streams(trace) }
}

/// All but its streams.
pub(super) fn without_streams(trace: &Trace) -> Document {
    let recording = trace.recording;
    Document {
        schema: SCHEMA.into(),
        command: recording.command.clone(),
        engine: recording.engine,
        engine_reason: recording.engine_reason.clone(),
        exact: recording.exact,
        elapsed_s: recording.elapsed_s,
        exit: recording.exit,
        overhead: recording.overhead.clone(),
        verdict: trace.verdict.clone(),
        streams: Vec::new(),
        other_calls: recording.others.iter().map(|one| other_calls(recording, one)).collect(),
        findings: trace.findings.to_vec(),
        pipelines: trace.pipelines.to_vec(),
        processes: recording.processes.clone(),
        blind: recording.blind.clone(),
        prices: recording.prices,
    }
}

/// One of its streams.
pub(super) fn stream(stream: &streams::Stream) -> Stream {
    let flow = &stream.flow;
    Stream {
        pid: flow.pid,
        comm: stream.comm.into(),
        fd: flow.fd,
        path: stream.path.into(),
        also: stream.also.iter().map(|name| name.to_string()).collect(),
        inode: stream.inode.map(|(dev, ino)| Inode { dev, ino }),
        openings: stream.openings.len() as u64,
        kind: stream.kind,
        direction: flow.direction,
        calls: flow.calls,
        bytes: flow.bytes,
        sizes: keyed(&flow.sizes),
        typical_bytes: stream.typical_bytes(),
        mode: stream.mode.map(|seen| seen.mode),
        mode_seen: stream.mode.is_some_and(|seen| seen.walked),
        buffer_bytes: stream.mode.and_then(|seen| seen.buffer_bytes),
        cost_s: stream.cost_s,
        share: stream.share,
        exact: flow.exact,
        estimated: flow.estimated,
        errors: flow.errors,
        again: flow.again,
        zeros: flow.zeros,
        short: flow.short,
        in_kernel: flow.in_kernel,
        syncs: flow.syncs,
        seeks: flow.seeks,
    }
}

fn other_calls(recording: &Recording, one: &trace::OtherCalls) -> OtherCalls {
    OtherCalls {
        pid: one.pid,
        comm: recording.comm(one.pid, one.image).into(),
        call: one.op.name().into(),
        calls: one.calls,
        failed: one.failed(),
        errors: one.errors.iter().map(|(&number, &times)| (error(number), times)).collect(),
        submitted: one.submitted,
        exact: one.exact,
    }
}

fn keyed(sizes: &Histogram) -> BTreeMap<u64, u64> {
    let used = sizes.0.iter().enumerate().filter(|(_, count)| **count > 0);
    used.map(|(slot, &count)| (Histogram::floor(slot), count)).collect()
}
