//! Shared by the tests: runs the ptrace backend on a small program and keeps all of its events.
#![allow(dead_code)] // each test binary uses a part

#[path = "../../../../tests/common/programs.rs"]
pub mod programs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use weir_model::trace::{Exit, IoTotals, Op, SnapshotMoment};
use weir_sys::{Error, launch};
use weir_trace_api::{
    BackendReport, EventSink, RawCall, RawEvent, RawEventKind, TraceBackend, TraceHooks, TraceOptions,
    TraceRoot,
};
use weir_trace_ptrace::PtraceBackend;

/// The result of one run of the backend.
pub struct TraceRun {
    pub events: Vec<RawEvent>,
    pub snapshots: Vec<(u32, SnapshotMoment)>,
    pub ticks: usize,
    pub report: BackendReport,
}

/// Runs the ptrace backend on a process.
pub fn trace(root: TraceRoot, options: &TraceOptions) -> Result<TraceRun, Error> {
    let (mut events, mut snapshots, mut ticks) = (Vec::new(), Vec::new(), 0);
    let mut read_buffers = |pid, moment| {
        snapshots.push((pid, moment));
        Vec::new()
    };
    let mut sink = |event| events.push(event);
    let mut tick = |_: u64, _: &mut EventSink<'_>| ticks += 1;
    let mut backend = PtraceBackend::probe(options)?;
    backend.attach(root)?;
    let hooks = TraceHooks { sink: &mut sink, snapshots: &mut read_buffers, tick: &mut tick };
    let report = backend.run(options, hooks)?;
    drop(Box::new(backend).detach());
    Ok(TraceRun { events, snapshots, ticks, report })
}

pub fn command(command: &[&str]) -> TraceRoot {
    TraceRoot::Command(
        launch::start(&command.iter().map(OsString::from).collect::<Vec<_>>()).expect("a child"),
    )
}

/// Traces every call of a command under the seccomp filter.
pub fn trace_filtered(words: &[&str]) -> TraceRun {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let gated = launch::start_filtered(&words).expect("a child");
    trace(TraceRoot::Command(gated), &exact()).expect("the command is traced")
}

pub fn exact() -> TraceOptions {
    TraceOptions { exact: true, ..TraceOptions::default() }
}

/// Traces every call of a command.
pub fn trace_exact(words: &[&str]) -> TraceRun {
    trace(command(words), &exact()).expect("the command is traced")
}

/// Traces a command with the default options, that is, with sampling.
pub fn trace_sampled(words: &[&str]) -> TraceRun {
    trace(command(words), &TraceOptions::default()).expect("the command is traced")
}

impl TraceRun {
    pub fn calls(&self) -> impl Iterator<Item = &RawCall> {
        self.events.iter().filter_map(|event| match &event.kind {
            RawEventKind::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the number of calls of each operation.
    pub fn counts(&self) -> BTreeMap<Op, u64> {
        let mut counts = BTreeMap::new();
        for call in self.calls() {
            *counts.entry(call.op).or_default() += 1;
        }
        counts
    }

    pub fn exits(&self) -> Vec<(u32, Exit, Option<IoTotals>)> {
        let of = |event: &RawEvent| match event.kind {
            RawEventKind::Exit { exit, io, .. } => Some((event.pid, exit, io)),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    pub fn signals(&self) -> Vec<i32> {
        let of = |event: &RawEvent| match event.kind {
            RawEventKind::Signal { number } => Some(number),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    pub fn execs(&self) -> Vec<String> {
        let of = |event: &RawEvent| match &event.kind {
            RawEventKind::Exec { comm, .. } => Some(comm.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    /// Returns the emitted I/O totals of a process: its calls, and the totals of its gaps.
    pub fn emitted_totals(&self, pid: u32) -> IoTotals {
        let mut totals = IoTotals::default();
        let mut at: Option<IoTotals> = None;
        let mut gap = false;
        for event in self.events.iter().filter(|event| event.pid == pid) {
            match &event.kind {
                RawEventKind::Call(call) => add_call(&mut totals, call),
                RawEventKind::Gap { .. } => gap = true,
                RawEventKind::Totals(now) => {
                    if let (true, Some(before)) = (std::mem::take(&mut gap), at) {
                        totals.read_calls += now.read_calls - before.read_calls;
                        totals.write_calls += now.write_calls - before.write_calls;
                        totals.read_bytes += now.read_bytes - before.read_bytes;
                        totals.written_bytes += now.written_bytes - before.written_bytes;
                    }
                    at = Some(*now);
                }
                _ => {}
            }
        }
        totals
    }
}

/// Adds a call as the kernel counts it.
fn add_call(totals: &mut IoTotals, call: &RawCall) {
    let bytes = call.result.max(0) as u64;
    match call.op {
        Op::Read | Op::Pread | Op::Readv | Op::Preadv => {
            totals.read_calls += 1;
            totals.read_bytes += bytes;
        }
        Op::Write | Op::Pwrite | Op::Writev | Op::Pwritev => {
            totals.write_calls += 1;
            totals.written_bytes += bytes;
        }
        Op::Sendfile | Op::CopyFileRange => {
            totals.read_calls += 1;
            totals.write_calls += 1;
            totals.read_bytes += bytes;
            totals.written_bytes += bytes;
        }
        _ => {}
    }
}

/// Compiles a C program in `dir` and returns its path.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source).expect("the source is written");
    let made = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&file).args(flags).status();
    assert!(made.expect("cc runs").success(), "{name} compiles");
    program
}

/// Waits until a condition holds; fails after 20 s.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Records in the file WEIR_SKIPS why a test was skipped.
pub fn skip(name: &str, why: &str) {
    use std::io::Write;
    if let Some(file) = std::env::var_os("WEIR_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        writeln!(file.expect("the list of skipped tests"), "{name}: {why}").expect("a line");
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}
