//! What the tests of engines share: running one on a small program and keeping all it reports.
#![allow(dead_code)] // not every test binary uses everything

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

/// All that was reported of a run.
pub struct Seen {
    pub raws: Vec<RawEvent>,
    pub looks: Vec<(u32, SnapshotMoment)>,
    pub ticks: usize,
    pub ended: BackendReport,
}

/// Runs the ptrace backend on a process.
pub fn trace(root: TraceRoot, options: &TraceOptions) -> Result<Seen, Error> {
    let (mut raws, mut looks, mut ticks) = (Vec::new(), Vec::new(), 0);
    let mut snapshots = |pid, moment| {
        looks.push((pid, moment));
        Vec::new()
    };
    let mut sink = |raw| raws.push(raw);
    let mut tick = |_: u64, _: &mut EventSink<'_>| ticks += 1;
    let mut backend = PtraceBackend::probe(options)?;
    backend.attach(root)?;
    let hooks = TraceHooks { sink: &mut sink, snapshots: &mut snapshots, tick: &mut tick };
    let ended = backend.run(options, hooks)?;
    drop(Box::new(backend).detach());
    Ok(Seen { raws, looks, ticks, ended })
}

pub fn command(command: &[&str]) -> TraceRoot {
    TraceRoot::Command(
        launch::start(&command.iter().map(OsString::from).collect::<Vec<_>>()).expect("a child"),
    )
}

/// The same command under the seccomp filter.
pub fn filtered(words: &[&str]) -> Seen {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let gated = launch::start_filtered(&words).expect("a child");
    trace(TraceRoot::Command(gated), &exact()).expect("the command is traced")
}

pub fn exact() -> TraceOptions {
    TraceOptions { exact: true, ..TraceOptions::default() }
}

/// Sees every call of a command.
pub fn exactly(words: &[&str]) -> Seen {
    trace(command(words), &exact()).expect("the command is traced")
}

/// Sees it as is the default.
pub fn cheaply(words: &[&str]) -> Seen {
    trace(command(words), &TraceOptions::default()).expect("the command is traced")
}

impl Seen {
    pub fn calls(&self) -> impl Iterator<Item = &RawCall> {
        self.raws.iter().filter_map(|raw| match &raw.kind {
            RawEventKind::Call(call) => Some(call),
            _ => None,
        })
    }

    /// How often each was called.
    pub fn counts(&self) -> BTreeMap<Op, u64> {
        let mut counts = BTreeMap::new();
        for call in self.calls() {
            *counts.entry(call.op).or_default() += 1;
        }
        counts
    }

    pub fn exits(&self) -> Vec<(u32, Exit, Option<IoTotals>)> {
        let of = |raw: &RawEvent| match raw.kind {
            RawEventKind::Exit { exit, io, .. } => Some((raw.pid, exit, io)),
            _ => None,
        };
        self.raws.iter().filter_map(of).collect()
    }

    pub fn signals(&self) -> Vec<i32> {
        let of = |raw: &RawEvent| match raw.kind {
            RawEventKind::Signal { number } => Some(number),
            _ => None,
        };
        self.raws.iter().filter_map(of).collect()
    }

    pub fn execs(&self) -> Vec<String> {
        let of = |raw: &RawEvent| match &raw.kind {
            RawEventKind::Exec { comm, .. } => Some(comm.clone()),
            _ => None,
        };
        self.raws.iter().filter_map(of).collect()
    }

    /// Calls that the kernel counts: those told one by one, and those of the gaps.
    pub fn told(&self, pid: u32) -> IoTotals {
        let mut told = IoTotals::default();
        let mut at: Option<IoTotals> = None;
        let mut gap = false;
        for raw in self.raws.iter().filter(|raw| raw.pid == pid) {
            match &raw.kind {
                RawEventKind::Call(call) => count(&mut told, call),
                RawEventKind::Gap { .. } => gap = true,
                RawEventKind::Totals(now) => {
                    if let (true, Some(before)) = (std::mem::take(&mut gap), at) {
                        told.read_calls += now.read_calls - before.read_calls;
                        told.write_calls += now.write_calls - before.write_calls;
                        told.read_bytes += now.read_bytes - before.read_bytes;
                        told.written_bytes += now.written_bytes - before.written_bytes;
                    }
                    at = Some(*now);
                }
                _ => {}
            }
        }
        told
    }
}

fn count(told: &mut IoTotals, call: &RawCall) {
    let bytes = call.result.max(0) as u64;
    match call.op {
        Op::Read | Op::Pread | Op::Readv | Op::Preadv => {
            told.read_calls += 1;
            told.read_bytes += bytes;
        }
        Op::Write | Op::Pwrite | Op::Writev | Op::Pwritev => {
            told.write_calls += 1;
            told.written_bytes += bytes;
        }
        Op::Sendfile | Op::CopyFileRange => {
            told.read_calls += 1;
            told.write_calls += 1;
            told.read_bytes += bytes;
            told.written_bytes += bytes;
        }
        _ => {}
    }
}

/// Compiles a C program in `dir`.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source).expect("the source is written");
    let made = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&file).args(flags).status();
    assert!(made.expect("cc runs").success(), "{name} compiles");
    program
}

/// Waits until something is so; fails after 20 s.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says that a test cannot run here.
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
