//! The /proc backend: samples processes through /proc (proc(5)), and needs no privilege but to read it.
//!
//! It records the start and end of processes, their totals and the progress of file offsets, but no single call.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use weir_model::Untrusted;
use weir_model::trace::{BackendKind, Exit, IoTotals, SnapshotMoment, StreamCounts};
use weir_sys::Error;
use weir_sys::clock::now_ns;
use weir_sys::executing_processes::ExecutingProcesses;
use weir_sys::launch::reap;
use weir_sys::open_files::{FdInfo, direction_of, fdinfo};
use weir_sys::proc::{self, ResourceUsage};
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::process_status::is_executing;
use weir_sys::unkillable;
use weir_trace_api::{
    BackendReport, BufferSnapshots, DeferredCleanup, EventSink, RawCounts, RawEvent, RawEventKind,
    TraceBackend, TraceHooks, TraceOptions, TraceRoot,
};

/// The sampling interval. [`blind_spots`] names its consequence: shorter processes are missed.
const INTERVAL: Duration = Duration::from_millis(50);
/// The most descriptors of a process that a sample reads, at about 20 µs each: servers have fewer, and a sample stays short.
const MAX_DESCRIPTORS: usize = 4096;
/// The time for which the first read of a process waits for the end of an execve(2), and the least number of tries: a process that
/// executes one program after the other can be in execve(2) at several reads in a row, and at no check between them.
const MAX_EXECVE: Duration = Duration::from_millis(500);
const MIN_TRIES: u32 = 12;

/// One process at its last sample.
struct SampledProcess {
    identity: ProcessIdentity,
    exe: Untrusted,
    began_ns: u64,
    /// The I/O counters when sampling began.
    before: IoTotals,
    /// The I/O counters since sampling began.
    totals: IoTotals,
    /// CPU time in user mode and in the kernel, nanoseconds.
    times: (u64, u64),
    /// The file offsets by descriptor.
    positions: HashMap<i32, FdPosition>,
}

/// The file offset of a descriptor.
#[derive(Clone, PartialEq)]
struct FdPosition {
    path: Untrusted,
    flags: i32,
    offset: u64,
}

/// The state of one run.
struct Sampler<'s, 'c> {
    sink: &'s mut EventSink<'c>,
    snapshots: &'s mut dyn BufferSnapshots,
    processes: HashMap<u32, SampledProcess>,
    report: BackendReport,
    blind_spots: BTreeSet<String>,
    /// Processes that were never sampled, because they stay in execve(2).
    executing: ExecutingProcesses,
}

/// The /proc backend. Its option is `--engine sample`.
#[derive(Debug, Default)]
pub struct ProcBackend {
    root: Option<TraceRoot>,
}

impl TraceBackend for ProcBackend {
    fn probe(_options: &TraceOptions) -> Result<Self, Error> {
        Ok(Self::default())
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Sample
    }

    fn attach(&mut self, root: TraceRoot) -> Result<(), Error> {
        self.root = Some(root);
        Ok(())
    }

    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error> {
        let missing = || Error::Backend { backend: "sample", reason: "no process is attached".into() };
        sample(self.root.take().ok_or_else(missing)?, options, hooks)
    }

    fn detach(self: Box<Self>) -> DeferredCleanup {
        DeferredCleanup::default()
    }
}

/// Samples the root and its descendants until the root has ended, the limit passes or the stop flag is set.
fn sample(
    root: TraceRoot,
    options: &TraceOptions,
    hooks: TraceHooks<'_, '_>,
) -> Result<BackendReport, Error> {
    let TraceHooks { sink, snapshots, tick } = hooks;
    let attached = match &root {
        TraceRoot::Process(process) => Some(*process),
        TraceRoot::Command(_) => None,
    };
    let (root_pid, began) = (root.pid(), now_ns());
    let is_command = matches!(root, TraceRoot::Command(_));
    // Before the command is released: an error ends weir, and the command would go on alone.
    check_access(root_pid)?;
    if let TraceRoot::Command(gated) = root {
        gated.release()?;
    }
    let mut sampler = Sampler::new(sink, snapshots);
    sampler.add_process(root_pid, None, now_ns(), is_command);
    loop {
        let now = now_ns();
        let exit = if is_command { child_exit(root_pid) } else { None };
        let has_gone = attached.is_some_and(|process| !process.is_current() || !is_alive(root_pid));
        if exit.is_some() || has_gone {
            sampler.remove_process(root_pid, exit, now);
            if is_command {
                reap(root_pid);
            }
            break;
        }
        sampler.sample_tree(root_pid, now);
        tick(now, sampler.sink);
        let asked = !is_command && options.stop.load(std::sync::atomic::Ordering::Relaxed);
        if asked
            || unkillable::leaving().is_some()
            || options.limit.is_some_and(|limit| now - began >= limit.as_nanos() as u64)
        {
            break;
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(sampler.finish(now_ns()))
}

/// Fails with [`Error::Process`] if /proc/PID/io of a process cannot be read. In execve(2) it has no answer, so a process that
/// executes a program at this moment gets [`MAX_EXECVE`].
fn check_access(pid: u32) -> Result<(), Error> {
    let end = Instant::now() + MAX_EXECVE;
    let mut tries = 0;
    while tries < MIN_TRIES || is_executing(pid) && Instant::now() < end {
        if proc::io(pid).is_some() {
            return Ok(());
        }
        tries += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    let errno = if proc::exists(pid) { libc::EACCES } else { libc::ESRCH };
    let source = std::io::Error::from_raw_os_error(errno);
    Err(Error::Process { call: "read of /proc/PID/io", pid, source })
}

/// Returns the limits that every run of this backend has.
fn blind_spots() -> BTreeSet<String> {
    let all = [
        "single calls, their sizes, order and errors: only totals and file offsets were sampled",
        "processes that ran for less than 50 ms, and the last 50 ms of each process",
        "which pipe, socket or terminal the bytes of a process went to",
    ];
    all.map(str::to_string).into()
}

/// Returns how a child of weir ended; None if it has not. The child stays a zombie, so that its counters can be read.
fn child_exit(pid: u32) -> Option<Exit> {
    // SAFETY: zero is a valid siginfo_t; waitid(2) fills it and sets si_pid and si_status for a child.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let has_ended = libc::waitid(libc::P_PID, pid, &mut info, flags) == 0 && info.si_pid() as u32 == pid;
        has_ended.then(|| match info.si_code {
            libc::CLD_EXITED => Exit::Code(info.si_status()),
            _ => Exit::Signal(info.si_status()),
        })
    }
}

/// Returns whether a process exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    proc::status(pid).is_some_and(|status| !status.state.starts_with(['Z', 'X']))
}

impl<'s, 'c> Sampler<'s, 'c> {
    fn new(sink: &'s mut EventSink<'c>, snapshots: &'s mut dyn BufferSnapshots) -> Self {
        Sampler {
            sink,
            snapshots,
            processes: HashMap::new(),
            report: BackendReport::default(),
            blind_spots: blind_spots(),
            executing: ExecutingProcesses::default(),
        }
    }

    fn emit(&mut self, ns: u64, pid: u32, kind: RawEventKind) {
        (self.sink)(RawEvent { ns, pid, tid: pid, kind });
    }

    /// Adds a process and emits its start. `is_new`: the process started during the trace.
    fn add_process(&mut self, pid: u32, parent: Option<u32>, now: u64, is_new: bool) {
        let (exe, comm, argv) = proc::names(pid);
        let before = if is_new { IoTotals::default() } else { proc::io(pid).unwrap_or_default() };
        match parent {
            Some(parent) => self.emit(now, parent, RawEventKind::Fork { child: pid, shares_files: false }),
            None => self.emit(now, pid, RawEventKind::Begin),
        }
        self.emit(now, pid, RawEventKind::Totals(IoTotals::default()));
        if is_new
            && parent.and_then(|parent| self.processes.get(&parent)).is_none_or(|parent| parent.exe != exe)
        {
            self.emit(now, pid, RawEventKind::Exec { exe: exe.clone(), comm, argv });
        }
        let process = SampledProcess {
            identity: ProcessIdentity::of(pid),
            exe,
            began_ns: now,
            before,
            totals: IoTotals::default(),
            times: (0, 0),
            positions: positions(pid).0,
        };
        self.processes.insert(pid, process);
    }

    /// Samples the root and its descendants.
    fn sample_tree(&mut self, root: u32, now: u64) {
        let mut visited = BTreeSet::new();
        let mut next = vec![root];
        while let Some(pid) = next.pop() {
            if !visited.insert(pid) || !is_alive(pid) {
                continue;
            }
            // Reads of a process that never leaves execve(2) block for ever. A process can call it between two reads of a sample.
            if !is_executing(pid) {
                self.sample_process(pid, now);
            } else if !self.processes.contains_key(&pid) {
                self.executing.note(pid, now);
                // The recording of a child begins with a read of its parent.
                continue;
            }
            for child in proc::children(pid) {
                let is_new = !self.processes.contains_key(&child) && is_alive(child);
                if is_new && !is_executing(child) {
                    self.add_process(child, Some(pid), now, true);
                }
                next.push(child);
            }
        }
        // The caller handles the end of the root, whose exit status it may know.
        let ended: Vec<u32> =
            self.processes.keys().copied().filter(|pid| *pid != root && !is_alive(*pid)).collect();
        for pid in ended {
            self.remove_process(pid, None, now);
        }
    }

    /// Emits the progress of a process since its last sample.
    fn sample_process(&mut self, pid: u32, now: u64) {
        let (exe, comm, argv) = proc::names(pid);
        let (io, times) = (proc::io(pid), proc::cpu_times_ns(pid));
        let (positions, is_complete) = positions(pid);
        let Some(process) = self.current(pid) else { return };
        // /proc/PID/io includes reaped children, which this backend cannot tell apart.
        process.totals = io.map_or(process.totals, |io| io.since(process.before));
        process.times = times.unwrap_or(process.times);
        let (totals, changed) = (process.totals, !exe.is_empty() && process.exe != exe);
        if changed {
            process.exe = exe.clone();
            self.emit(now, pid, RawEventKind::Exec { exe, comm, argv });
        }
        self.emit(now, pid, RawEventKind::Totals(totals));
        if !is_complete {
            let text = format!("files beyond the first {MAX_DESCRIPTORS} descriptors of a process");
            self.blind_spots.insert(text);
        }
        self.emit_progress(pid, now, positions);
        let buffers = self.snapshots.snapshot(pid, SnapshotMoment::Sample);
        let read_until_ns = now_ns();
        if !buffers.is_empty() {
            let blocked_in = proc::current_syscall(pid);
            let buffers = RawEventKind::buffers(pid, SnapshotMoment::Sample, buffers, blocked_in)
                .read_until(read_until_ns);
            if self.current(pid).is_some() {
                self.emit(now, pid, buffers);
            }
        }
    }

    /// Returns a process that still has its number. If not, what was just read by the number can be of another process.
    fn current(&mut self, pid: u32) -> Option<&mut SampledProcess> {
        self.processes.get_mut(&pid).filter(|process| process.identity.is_current())
    }

    /// Emits the progress of each file offset since the last sample.
    fn emit_progress(&mut self, pid: u32, now: u64, after: HashMap<i32, FdPosition>) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let before = std::mem::take(&mut process.positions);
        let since = now.saturating_sub(INTERVAL.as_nanos() as u64);
        let counts: Vec<RawCounts> = after
            .iter()
            .filter_map(|(fd, position)| {
                let last = before.get(fd).filter(|last| last.path == position.path)?;
                let counts = progress(pid, *fd, position, last.offset)?;
                Some(RawCounts {
                    counts,
                    first_ns: since,
                    last_ns: now,
                    unreported_seeks: 0,
                    last_unreported_seek: None,
                })
            })
            .collect();
        process.positions = after;
        for each in counts {
            self.emit(now, pid, RawEventKind::Counts(Box::new(each)));
        }
    }

    /// Removes a process that has ended, and emits its end if `exit` is known.
    fn remove_process(&mut self, pid: u32, exit: Option<Exit>, now: u64) {
        let Some(mut process) = self.processes.remove(&pid) else { return };
        // A zombie still has its counters. Without one they can be those of another process that has got the number.
        let (io, times) = (proc::io(pid), proc::cpu_times_ns(pid));
        if process.identity.is_current() {
            process.totals = io.map_or(process.totals, |io| io.since(process.before));
            process.times = times.unwrap_or(process.times);
        }
        self.emit_gap(pid, &process, now);
        let (user_ns, system_ns) = process.times;
        let usage = ResourceUsage { user_ns, system_ns, ..ResourceUsage::default() };
        match exit {
            Some(exit) => {
                self.report.exit = Some(exit);
                self.emit(now, pid, RawEventKind::Exit { exit, io: Some(process.totals), usage });
            }
            None => {
                self.blind_spots
                    .insert("the exit status of processes that weir did not start itself".to_string());
            }
        }
    }

    /// Emits the whole time of a process as one gap, with its totals.
    fn emit_gap(&mut self, pid: u32, process: &SampledProcess, now: u64) {
        self.report.gap_ns += now.saturating_sub(process.began_ns);
        self.emit(process.began_ns, pid, RawEventKind::Gap { until_ns: now });
        self.emit(now, pid, RawEventKind::Totals(process.totals));
    }

    /// Emits the gaps of the processes that still run and returns the report.
    fn finish(mut self, now: u64) -> BackendReport {
        for (pid, process) in std::mem::take(&mut self.processes) {
            self.emit_gap(pid, &process, now);
        }
        self.blind_spots.extend(self.executing.sentences());
        self.report.blind_spots = self.blind_spots.into_iter().collect();
        self.report
    }
}

/// Returns the file offsets of those of the first [`MAX_DESCRIPTORS`] descriptors that refer to files, and whether there are no more
/// descriptors.
fn positions(pid: u32) -> (HashMap<i32, FdPosition>, bool) {
    let of = |fd: i32| {
        let path = proc::descriptor(pid, fd)?;
        let FdInfo { position: offset, flags, .. } = fdinfo(pid, fd)?;
        Some((fd, FdPosition { path, flags, offset }))
    };
    let is_file = |position: &(i32, FdPosition)| position.1.path.exact().starts_with('/');
    let descriptors = proc::descriptors(pid);
    let is_complete = descriptors.len() <= MAX_DESCRIPTORS;
    (descriptors.into_iter().take(MAX_DESCRIPTORS).filter_map(of).filter(is_file).collect(), is_complete)
}

/// Returns the bytes between two offsets of a descriptor that is open for one direction only. The number of calls is
/// unknown and stays 0; bytes after the last sample are missing.
fn progress(pid: u32, fd: i32, now: &FdPosition, before: u64) -> Option<StreamCounts> {
    let bytes = now.offset.checked_sub(before).filter(|bytes| *bytes > 0)?;
    Some(StreamCounts {
        bytes,
        exact: false,
        estimated: true,
        ..StreamCounts::new(pid, 0, fd, 0, direction_of(now.flags)?)
    })
}
