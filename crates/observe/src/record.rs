//! Records a command or a process: chooses the backend, runs it, and makes a recording of its events.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::time::ClockId;
use weir_model::text_of;
use weir_model::trace::{BackendKind, Buffer, Exit, Recording, RuntimeId, SnapshotMoment};
use weir_recorder::{Recorder, RecorderOutput};
use weir_sys::breakpoint::BreakpointWarmup;
use weir_sys::clock::{clock_ns, now_ns};
use weir_sys::group_witness::GroupWitness;
use weir_sys::hang_guard::{GuardedWork, HangGuard};
use weir_sys::inherited::{self, InheritedFds};
use weir_sys::memory::{silent_files, silent_processes};
use weir_sys::mount_table;
use weir_sys::process_access::yama_forbids;
use weir_sys::{Error, errno_text, launch, proc, signals};
use weir_trace_api::{
    BackendChoice, BackendReport, BufferSnapshots, DeferredCleanup, EventSink, RawEvent, RawEventKind,
    TraceBackend, TraceHooks, TraceOptions, TraceRoot, TraceTarget,
};
use weir_trace_ebpf::EbpfBackend;
use weir_trace_proc::ProcBackend;
use weir_trace_ptrace::PtraceBackend;

use crate::blind_spots::blind_spots;
use crate::blocked_calls::BlockedCalls;
use crate::buffer_watch::BufferWatch;
use crate::overhead::overhead;
use crate::program_languages::ProgramLanguages;
use crate::survivors::survivors_sentence;
use crate::target_state::{attachable, stopped_sentences};
use crate::unreadable_buffers::UnreadableSearch;
use crate::unseen_files::unseen_files;

/// The most CPU time that counts as weir's own start, seconds. More is that of the program that became weir by execve(2).
const STARTUP_CPU_MAX_S: f64 = 0.02;

/// Observes the target until it ends, the time limit is over or the stop flag is set, and returns the recording.
/// The command has ended when the returned cleanup is dropped.
pub fn record(options: &TraceOptions) -> Result<(Recording, DeferredCleanup), Error> {
    // The CPU time since weir was forked, which includes loading it.
    let loading_s = seconds(clock_ns(ClockId::ProcessCPUTime)).min(STARTUP_CPU_MAX_S);
    let start_ns = now_ns();
    // The command is forked first, while weir has the least memory that the fork must copy.
    let (root, forwarding) = start_target(options)?;
    let pid = root.pid();
    let blocked = matches!(root, TraceRoot::Process(_)).then(|| BlockedCalls::of(pid));
    // Prepares the breakpoints while the backend loads, after the fork, during which no other thread may run.
    let _breakpoints = (options.backend != BackendChoice::Proc).then(BreakpointWarmup::start);
    let (mut backend, mut reason) = choose(options)?;
    backend.attach(root)?;
    let zero_ns = now_ns();
    let command = matches!(options.target, TraceTarget::Command(_)).then_some(pid);
    let mut observation = Observation::new(zero_ns, backend.kind(), options, command);
    let _guard = HangGuard::start(GuardedWork::Trace, command, None);
    let report = match run(&mut *backend, options, &observation) {
        // A process that may not be traced can still be read about in /proc.
        Err(Error::Process { source, .. })
            if options.backend == BackendChoice::Auto && options.limit.is_some() && command.is_none() =>
        {
            reason = format!("{reason}; ptrace: {}", errno_text(&source));
            backend = Box::new(ProcBackend::probe(options)?);
            if let TraceTarget::Process(process) = options.target {
                backend.attach(TraceRoot::Process(process))?;
            }
            observation = Observation::new(zero_ns, backend.kind(), options, command);
            run(&mut *backend, options, &observation)?
        }
        other => other?,
    };
    let kind = backend.kind();
    blocked.inspect(|blocked| blocked.add_to(&mut lock(&observation.recorder)));
    let cleanup = backend.detach();
    let elapsed_s = seconds(now_ns() - zero_ns);
    drop(forwarding);
    // The command waits for weir until its gate is opened.
    let startup_s = loading_s + seconds(zero_ns.max(report.released_ns) - start_ns);
    let mut recording = observation.finish(options, kind, report, zero_ns);
    recording.root = pid;
    recording.backend_reason = reason;
    recording.elapsed_s = elapsed_s;
    recording.overhead.startup_s = startup_s;
    Ok((recording, cleanup))
}

/// Starts the command, stopped at its gate, or checks the process to attach to. For a command, signals to weir are
/// forwarded to it until the returned guard is dropped, and weir closes the descriptors that only the command needs.
fn start_target(options: &TraceOptions) -> Result<(TraceRoot, Option<CommandSignals>), Error> {
    let command = match &options.target {
        TraceTarget::Command(command) => command,
        TraceTarget::Process(process) => return Ok((TraceRoot::Process(attachable(*process)?), None)),
    };
    let filtered = options.seccomp && options.exact && options.backend == BackendChoice::Ptrace;
    let start = if filtered { launch::start_filtered } else { launch::start };
    let gated = start(command)?;
    inherited::close_inherited(options.inherited);
    let forwards = options.inherited != InheritedFds::All;
    let forwarding = forwards.then(|| CommandSignals {
        // The other backends see the signals that the command gets.
        _witness: (options.backend == BackendChoice::Proc).then(|| GroupWitness::start().ok()).flatten(),
        _forwarding: signals::forward(gated.pid, &signals::FORWARDED),
    });
    Ok((TraceRoot::Command(gated), forwarding))
}

/// Forwards signals to the command until it is dropped.
struct CommandSignals {
    _forwarding: signals::SignalForwarding,
    /// Ends after the forwarding, because fields are dropped in this order.
    _witness: Option<GroupWitness>,
}

/// Returns the backend that was asked for, or the best that works, with the reason why it is not a better one.
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
            Err(Error::Backend { reason, .. }) => without_ebpf(options, &reason)?,
            Err(error) => without_ebpf(options, &error.to_string())?,
        },
    })
}

/// Returns the ptrace backend, or the one of /proc if Yama lets weir trace no process. `reason` is that of eBPF.
fn without_ebpf(options: &TraceOptions, reason: &str) -> Result<(Box<dyn TraceBackend>, String), Error> {
    let is_command = matches!(options.target, TraceTarget::Command(_));
    let can_sample = !options.exact && (is_command || options.limit.is_some());
    Ok(match yama_forbids().filter(|_| can_sample) {
        Some(yama) => (Box::new(ProcBackend::probe(options)?), format!("eBPF: {reason}; ptrace: {yama}")),
        None => (Box::new(PtraceBackend::probe(options)?), format!("eBPF: {reason}")),
    })
}

fn run(
    backend: &mut dyn TraceBackend,
    options: &TraceOptions,
    observation: &Observation,
) -> Result<BackendReport, Error> {
    let mut sink = |event: RawEvent| observation.take(event);
    let mut snapshots = Snapshots(observation);
    let mut tick =
        |now: u64, sink: &mut EventSink<'_>| observation.tick(now).into_iter().for_each(&mut *sink);
    backend.run(options, TraceHooks { sink: &mut sink, snapshots: &mut snapshots, tick: &mut tick })
}

/// Records a backend's events and takes the buffer snapshots of the processes in them.
struct Observation {
    recorder: Mutex<Recorder>,
    watch: Mutex<BufferWatch>,
    unreadable: Mutex<UnreadableSearch>,
    languages: Mutex<ProgramLanguages>,
}

/// The buffer snapshots of a backend.
struct Snapshots<'a>(&'a Observation);

impl BufferSnapshots for Snapshots<'_> {
    fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer> {
        if matches!(moment, SnapshotMoment::Exit | SnapshotMoment::Signal) {
            // The memory of some processes is read through another thread than the first.
            lock(&self.0.unreadable).note_snapshot(proc::process_of(pid).unwrap_or(pid), moment);
        }
        lock(&self.0.watch).snapshot(pid, moment)
    }

    fn flushing(&mut self) -> Vec<u64> {
        lock(&self.0.watch).take_flushing()
    }

    fn image_started(&mut self, pid: u32, list: u64) {
        lock(&self.0.watch).watch_image_start(pid, list);
    }

    fn resumed(&mut self, pid: u32) {
        lock(&self.0.watch).complete_image_start(pid);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observation {
    fn new(zero_ns: u64, backend: BackendKind, options: &TraceOptions, command: Option<u32>) -> Self {
        let every_call = options.every_call && backend != BackendKind::Sample;
        let recorder = Recorder::new(zero_ns, backend == BackendKind::Ebpf).with_every_call(every_call);
        Self {
            recorder: Mutex::new(recorder.with_command(command)),
            watch: Mutex::new(BufferWatch::new().with_exact(options.exact)),
            unreadable: Mutex::default(),
            languages: Mutex::default(),
        }
    }

    fn take(&self, event: RawEvent) {
        match &event.kind {
            RawEventKind::Begin => {
                lock(&self.watch).begin(event.pid);
                lock(&self.unreadable).begin(event.pid, None);
            }
            RawEventKind::Exec { exe, comm, .. } => {
                lock(&self.languages).begin(event.pid, exe, comm);
                lock(&self.watch).exec(event.pid, event.ns);
                lock(&self.unreadable).begin(event.pid, Some(exe.exact()));
            }
            RawEventKind::Fork { child, .. } => lock(&self.watch).fork(event.pid, *child),
            RawEventKind::Exit { exit, .. } => {
                lock(&self.watch).end(event.pid);
                match exit {
                    Exit::Signal(_) => lock(&self.unreadable).end_by_signal(event.pid),
                    _ => lock(&self.unreadable).end(event.pid),
                }
            }
            RawEventKind::Buffers { moment, buffers, .. } => {
                // The kernel programs read the C library's streams only, of every process.
                let is_whole = buffers.iter().any(|buffer| buffer.walker != RuntimeId::GLIBC);
                if *moment != SnapshotMoment::Signal || is_whole {
                    lock(&self.unreadable).note_snapshot(event.pid, *moment);
                }
                lock(&self.watch).note(event.pid, *moment, buffers, event.ns);
            }
            RawEventKind::Unstopped => lock(&self.unreadable).note_unstopped(event.pid),
            RawEventKind::UnstoppedFork => lock(&self.unreadable).note_unstopped_fork(event.pid),
            _ => {}
        }
        lock(&self.recorder).record(event);
    }

    /// Takes the buffer snapshots that are due and returns them as events. The caller submits them after the lock of
    /// the watch is released.
    fn tick(&self, now_ns: u64) -> Vec<RawEvent> {
        let mut events = Vec::new();
        // Before the search for unreadable buffers, so that the snapshots are taken at `now_ns`.
        lock(&self.watch).tick(now_ns, &mut |event| events.push(event));
        lock(&self.unreadable).check(now_ns);
        lock(&self.languages).check();
        events
    }

    /// Notes what the buffer snapshots could not read.
    fn note_unreadable(&self) {
        let unsearched = lock(&self.watch).take_unsearched();
        unsearched.into_iter().for_each(|pid| lock(&self.unreadable).note_unsearched(pid));
        let records = lock(&self.watch).take_kept_records();
        records.into_iter().for_each(|(pid, records)| lock(&self.unreadable).note(pid, records));
    }

    /// Makes the recording. The caller fills in the root, the backend's reason and the times around the run.
    fn finish(
        self,
        options: &TraceOptions,
        backend: BackendKind,
        report: BackendReport,
        zero_ns: u64,
    ) -> Recording {
        let write_sites = lock(&self.watch).take_write_sites(zero_ns);
        let sampled_calls = lock(&self.watch).take_sampled_calls(zero_ns);
        let skipped_searches = lock(&self.watch).blind_spot();
        let unanswered: Vec<String> = lock(&self.watch).executing.sentences().collect();
        self.note_unreadable();
        let mut unreadable = into_inner(self.unreadable).finish();
        let mut output = into_inner(self.recorder).finish();
        let watch = into_inner(self.watch);
        output
            .processes
            .iter_mut()
            .for_each(|process| process.threads = process.threads.max(watch.threads(process.pid)));
        into_inner(self.languages).finish(&mut output.processes, &output.events);
        unreadable.extend(unseen_files(&output, &unreadable, &watch.with_direct_errors()));
        note_inexact_counts(backend, &report, &mut output);
        let sentences =
            unreadable.iter().map(|one| format!("{}, which cannot be read", one.with_processes()));
        let silent = silent_processes().into_iter().chain(silent_files());
        let unobserved: BTreeSet<String> = skipped_searches
            .into_iter()
            .chain(survivors_sentence(&options.target, report.exit, &output.processes))
            .chain(silent)
            .chain(unanswered)
            .chain(stopped_sentences(&output.processes))
            .collect();
        let incomplete = backend == BackendKind::Sample
            || report.lost_events > 0
            || !(report.blind_spots.is_empty() && unobserved.is_empty())
            || !output.untracked_transfers.is_empty()
            || output.dropped_events > 0;
        let unobserved = unobserved.into_iter().chain(sentences).collect();
        let of_backend = [report.blind_spots.as_slice(), &report.remarks].concat();
        Recording {
            environment: Default::default(),
            memory_devices: mount_table::memory_devices(),
            command: command_words(&options.target),
            root: 0,
            backend,
            backend_reason: String::new(),
            exact: report.gap_ns == 0
                && report.lost_events == 0
                && report.uncounted_calls == 0
                && backend != BackendKind::Sample
                && !output.submits,
            elapsed_s: 0.0,
            exit: report.exit,
            overhead: overhead(backend, &report),
            blind: blind_spots(backend, options.exact, of_backend, unobserved, &output),
            incomplete,
            unreadable,
            prices: options.prices,
            processes: output.processes,
            files: output.files,
            counts: output.streams,
            events: output.events,
            write_sites,
            sampled_calls,
            other_calls: output.other_calls,
        }
    }
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the command's words; none for a process that was attached to.
fn command_words(target: &TraceTarget) -> Vec<String> {
    match target {
        TraceTarget::Command(command) => command.iter().map(text_of).collect(),
        TraceTarget::Process(_) => Vec::new(),
    }
}

/// Notes which counts are not exact.
fn note_inexact_counts(backend: BackendKind, report: &BackendReport, output: &mut RecorderOutput) {
    if backend == BackendKind::Sample {
        // Calls after the last sample of a process are missing, and a parent's totals include its children's.
        output.streams.iter_mut().for_each(|counts| (counts.exact, counts.estimated) = (false, true));
    }
    // Events count all calls but reads and writes.
    output.other_calls.iter_mut().for_each(|calls| calls.exact &= report.lost_events == 0);
}
