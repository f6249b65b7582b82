//! Records a command or a process: chooses the engine, starts it, and makes a recording of what it reports.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::time::ClockId;
use weir_model::Size;
use weir_model::trace::{BackendKind, Buffer, Overhead, Recording, SnapshotMoment, StreamCounts, WriteSite};
use weir_recorder::{Recorder, RecorderOutput};
use weir_sys::breakpoint::BreakpointWarmup;
use weir_sys::clock::{clock_ns, now_ns};
use weir_sys::inherited::{self, InheritedFds};
use weir_sys::{Error, errno_text, launch, proc, signals};
use weir_trace_api::{
    BackendChoice, BackendReport, BufferSnapshots, DeferredCleanup, EventSink, RawEvent, RawEventKind,
    TraceBackend, TraceHooks, TraceOptions, TraceRoot, TraceTarget,
};
use weir_trace_ebpf::EbpfBackend;
use weir_trace_proc::ProcBackend;
use weir_trace_ptrace::PtraceBackend;

use crate::buffer_watch::BufferWatch;
use crate::unreadable_buffers::UnreadableBuffers;

/// What seeing one call costs the program, about, in nanoseconds.
fn price_of_a_call(engine: BackendKind) -> f64 {
    match engine {
        BackendKind::Ebpf => 300.0,
        BackendKind::Ptrace => 12_000.0,
        BackendKind::Sample => 0.0,
    }
}

/// What weir's own program may take until it gets here: more is of whoever became weir by execve(2).
const LOADED_MOST_S: f64 = 0.02;

/// Watches until the target ends, or until it is told to stop, and says everything that was seen. A command has ended when the
/// rest has been dropped.
pub fn record(options: &TraceOptions) -> Result<(Recording, DeferredCleanup), Error> {
    // What this process had of processors since it was forked: the time to load it too.
    let loaded_s = seconds(clock_ns(ClockId::ProcessCPUTime)).min(LOADED_MOST_S);
    let begun = now_ns();
    let mut passed_on = None;
    // First: what a child copies of weir, and lets go of at its execve(2), is least now.
    let root = match &options.target {
        TraceTarget::Command(command) => {
            let filtered = options.seccomp && options.exact && options.backend == BackendChoice::Ptrace;
            let start = if filtered { launch::start_filtered } else { launch::start };
            let gated = start(command)?;
            inherited::close_inherited(options.inherited);
            passed_on = (options.inherited != InheritedFds::All)
                .then(|| signals::forward(gated.pid, &signals::FORWARDED));
            TraceRoot::Command(gated)
        }
        TraceTarget::Process(pid) => TraceRoot::Process(there(*pid)?),
    };
    let pid = root.pid();
    // It waits while the engine is loaded; behind the command's fork, which no thread is to be beside.
    let _breakpoints = (options.backend != BackendChoice::Proc).then(BreakpointWarmup::start);
    let (mut backend, mut reason) = choose(options)?;
    backend.attach(root)?;
    let started = now_ns();
    let command = matches!(options.target, TraceTarget::Command(_)).then_some(pid);
    let mut observation = Observation::new(started, backend.kind(), options, command);
    let ended = match run(&mut *backend, options, &observation) {
        // Whoever may not trace a process may still read about it in /proc.
        Err(Error::Process { source, .. })
            if options.backend == BackendChoice::Auto && options.limit.is_some() =>
        {
            reason = format!("{reason}; ptrace: {}", errno_text(&source));
            backend = Box::new(ProcBackend::probe(options)?);
            backend.attach(TraceRoot::Process(pid))?;
            observation = Observation::new(started, backend.kind(), options, command);
            run(&mut *backend, options, &observation)?
        }
        other => other?,
    };
    let kind = backend.kind();
    let rest = backend.detach();
    let elapsed_s = seconds(now_ns() - started);
    drop(passed_on);
    let (mut output, unknown, wrote) = observation.finish(started);
    if kind == BackendKind::Sample {
        // What came behind the last look at a process is in no figure; and what its children did is in its own as well.
        let guessed = |flow: &mut StreamCounts| (flow.exact, flow.estimated) = (false, true);
        output.flows.iter_mut().for_each(guessed);
    }
    // Until its gate was opened the command waited for weir.
    let startup_s = loaded_s + seconds(started.max(ended.released_ns) - begun);
    let overhead = overhead(kind, &ended, startup_s);
    let recording = Recording {
        command: words(&options.target),
        root: pid,
        backend: kind,
        backend_reason: reason,
        exact: ended.gap_ns == 0 && ended.lost_events == 0 && kind != BackendKind::Sample && !output.submits,
        elapsed_s,
        exit: ended.exit,
        overhead,
        blind: blind(kind, ended.blind_spots, unknown, &output),
        prices: options.prices,
        processes: output.processes,
        files: output.files,
        counts: output.flows,
        events: output.events,
        write_sites: wrote,
        other_calls: output.others,
    };
    Ok((recording, rest))
}

/// A process that is to be attached to: of one that has ended, be it a zombie still, not every engine would say so.
fn there(pid: u32) -> Result<u32, Error> {
    if !proc::has_ended(pid) {
        return Ok(pid);
    }
    let source = std::io::Error::from_raw_os_error(libc::ESRCH);
    Err(Error::Process { call: "read of /proc/PID/status", pid, source })
}

/// The backend that was asked for, or the best that works, with the reason why it is not a better one.
fn choose(options: &TraceOptions) -> Result<(Box<dyn TraceBackend>, String), Error> {
    let asked_for = || "it was asked for".to_string();
    Ok(match options.backend {
        BackendChoice::Ptrace if options.seccomp => {
            (Box::new(PtraceBackend::probe(options)?), "it was asked for, with a seccomp filter".into())
        }
        BackendChoice::Ptrace => (Box::new(PtraceBackend::probe(options)?), asked_for()),
        BackendChoice::Proc => (Box::new(ProcBackend::probe(options)?), asked_for()),
        BackendChoice::Ebpf => (Box::new(EbpfBackend::probe(options)?), String::new()),
        BackendChoice::Auto => match EbpfBackend::probe(options) {
            Ok(backend) => (Box::new(backend), String::new()),
            Err(Error::Backend { reason, .. }) => {
                (Box::new(PtraceBackend::probe(options)?), format!("eBPF: {reason}"))
            }
            Err(error) => (Box::new(PtraceBackend::probe(options)?), format!("eBPF: {error}")),
        },
    })
}

fn run(
    backend: &mut dyn TraceBackend,
    options: &TraceOptions,
    observation: &Observation,
) -> Result<BackendReport, Error> {
    let mut sink = |raw: RawEvent| observation.take(raw);
    let mut snapshots = Snapshots(observation);
    let mut tick =
        |now: u64, sink: &mut EventSink<'_>| observation.tick(now).into_iter().for_each(&mut *sink);
    backend.run(options, TraceHooks { sink: &mut sink, snapshots: &mut snapshots, tick: &mut tick })
}

/// Writes down what an engine reports, and looks into the buffers of those it reports of.
struct Observation {
    recorder: Mutex<Recorder>,
    watch: Mutex<BufferWatch>,
    unread: Mutex<UnreadableBuffers>,
}

/// The buffer snapshots of a backend.
struct Snapshots<'a>(&'a Observation);

impl BufferSnapshots for Snapshots<'_> {
    fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer> {
        lock(&self.0.watch).look(pid, moment)
    }

    fn image_started(&mut self, pid: u32, list: u64) {
        lock(&self.0.watch).begins(pid, list);
    }

    fn resumed(&mut self, pid: u32) {
        lock(&self.0.watch).begun(pid);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observation {
    fn new(started: u64, engine: BackendKind, options: &TraceOptions, command: Option<u32>) -> Self {
        let told = options.every_call && engine != BackendKind::Sample;
        let recorder = Recorder::new(started, engine == BackendKind::Ebpf).telling_all(told);
        Self {
            recorder: Mutex::new(recorder.of_command(command)),
            watch: Mutex::new(BufferWatch::new().exactly(options.exact)),
            unread: Mutex::default(),
        }
    }

    fn take(&self, raw: RawEvent) {
        match &raw.kind {
            RawEventKind::Begin => {
                lock(&self.watch).begin(raw.pid);
                lock(&self.unread).begins(raw.pid, None);
            }
            RawEventKind::Exec { exe, .. } => {
                lock(&self.watch).exec(raw.pid, raw.ns);
                lock(&self.unread).begins(raw.pid, Some(exe));
            }
            RawEventKind::Fork { child, .. } => lock(&self.watch).fork(raw.pid, *child),
            RawEventKind::Exit { .. } => lock(&self.watch).end(raw.pid),
            RawEventKind::Buffers { moment, buffers, .. } => {
                lock(&self.watch).note(raw.pid, *moment, buffers, raw.ns);
            }
            _ => {}
        }
        lock(&self.recorder).take(raw);
    }

    /// What the walkers see of those that sleep. Reported by the caller, when the walkers are free again.
    fn tick(&self, now_ns: u64) -> Vec<RawEvent> {
        let mut seen = Vec::new();
        // First, as it is now.
        lock(&self.watch).tick(now_ns, &mut |raw| seen.push(raw));
        lock(&self.unread).ask();
        seen
    }

    fn finish(self, started: u64) -> (RecorderOutput, BTreeSet<String>, Vec<WriteSite>) {
        let wrote = lock(&self.watch).wrote(started);
        let recorder = self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut unknown = self.unread.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
        unknown.extend(lock(&self.watch).blind());
        (recorder.finish(), unknown, wrote)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn words(target: &TraceTarget) -> Vec<String> {
    match target {
        TraceTarget::Command(command) => {
            command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        }
        TraceTarget::Process(_) => Vec::new(),
    }
}

fn overhead(engine: BackendKind, ended: &BackendReport, startup_s: f64) -> Overhead {
    Overhead {
        startup_s,
        watched_s: seconds(ended.observed_ns),
        unwatched_s: seconds(ended.gap_ns),
        seen_calls: ended.observed_calls,
        lost_events: ended.lost_events,
        cost_s: ended.observed_calls as f64 * price_of_a_call(engine) / 1e9,
    }
}

fn blind(
    engine: BackendKind,
    mut sentences: Vec<String>,
    unknown: BTreeSet<String>,
    output: &RecorderOutput,
) -> Vec<String> {
    sentences.extend(unknown);
    sentences.extend(output.beside.iter().cloned());
    sentences.extend(unknown_streams(engine, &output.flows, output.glanced_below.as_deref()));
    if output.left_out > 0 {
        sentences.push(format!("{} events more than are kept; the counters have them", output.left_out));
    }
    sentences
}

/// What went between two bursts, by processes that opened and closed files then; where no call is seen, what files do not
/// tell.
fn unknown_streams(
    engine: BackendKind,
    flows: &[StreamCounts],
    glanced_below: Option<&str>,
) -> Option<String> {
    let unknown = || flows.iter().filter(|flow| !flow.is_known());
    let sum = |of: fn(&StreamCounts) -> u64| unknown().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|flow| flow.calls), sum(|flow| flow.bytes));
    let processes = unknown().map(|flow| flow.pid).collect::<BTreeSet<_>>().len();
    let (who, whose) = match processes {
        1 => ("a process".to_string(), "it"),
        many => (format!("{many} processes"), "they"),
    };
    let glanced = |below: &str| format!(" (files that were open at a glance lie below {below})");
    let glanced = glanced_below.map(glanced).unwrap_or_default();
    if engine == BackendKind::Sample {
        return (calls > 0).then(|| {
            let bytes = Size(bytes);
            format!(
                "through which streams {who} moved about {bytes} in about {calls} calls: other engines see it"
            )
        });
    }
    (calls > 0).then(|| {
        format!(
            "through which streams {who} moved {} in {calls} calls while nobody looked, between two bursts: what {whose} \
             opened and closed then is not known{glanced}; --exact sees it",
            Size(bytes)
        )
    })
}
