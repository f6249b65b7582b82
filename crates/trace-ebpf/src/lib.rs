//! The eBPF backend: programs at tracepoints count calls and bytes per stream in the kernel and submit rare events.
//! Needs root or CAP_BPF and CAP_PERFMON, and a kernel with BTF.

mod blind_spots;
mod bpf_syscall;
mod command_start;
mod decode;
mod drain;
mod go_exit_watch;
mod image_reads;
mod kernel_file;
mod kernel_types;
mod libraries;
mod load;
mod overhead_budget;
mod ring_buffer;
mod sampling_gaps;
mod syscall_classes;
mod tracer;
mod tracer_requests;
mod tracer_wakeup;
mod wire;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weir_model::trace::{BackendKind, Exit, IoTotals};
use weir_sys::clock::now_ns;
use weir_sys::launch::{self, GatedCommand};
use weir_sys::{Error, code_pages, inherited, proc};
use weir_trace_api::{
    BackendReport, DeferredCleanup, EventSink, RawEvent, RawEventKind, TickHook, TraceBackend, TraceHooks,
    TraceOptions, TraceRoot, breakpoint_traps,
};

use decode::{Decoder, Note};
use image_reads::ImageReads;
use libraries::Libraries;
use load::Loaded;
use overhead_budget::{BudgetStep, OverheadBudget};
use sampling_gaps::SamplingGap;
use tracer_requests::{FirstStop, TracerHandle};
use wire::ProcessState;

const TICK_NS: u64 = 20_000_000;

/// So long the others that are killed with the root may take to their ends, on a busy machine.
const LAST_NS: u64 = 1_000_000_000;

/// The backend: programs that are loaded into the kernel.
pub struct EbpfBackend {
    loaded: Loaded,
    libraries: Libraries,
    root: Option<TraceRoot>,
    /// A child that has ended and was not waited for.
    unreaped: Option<u32>,
}

/// What one run keeps.
struct Run<'a> {
    backend: &'a mut EbpfBackend,
    decoder: Decoder,
    duty: OverheadBudget,
    pause: SamplingGap,
    images: ImageReads,
    root: u32,
    /// Readable when the root has ended; None: that has to be asked for.
    root_end: Option<OwnedFd>,
    /// It is weir's own child.
    command: bool,
    /// When that was let go.
    released_ns: u64,
    reaped: bool,
    /// Nothing of the root before its first execve(2) is the command's.
    hidden: bool,
    exit: Option<Exit>,
    stops: &'a TracerHandle<'a>,
    /// What the stops saw, until the events before it have been taken.
    seen: VecDeque<RawEvent>,
    /// Events that were taken out of the kernel's room.
    batch: Vec<u8>,
    /// It has gone before others since much came.
    hurries: bool,
    sink: &'a mut EventSink<'a>,
}

impl TraceBackend for EbpfBackend {
    /// Loads the programs.
    fn probe(options: &TraceOptions) -> Result<Self, Error> {
        let mut loaded = load::load(options.exact)?;
        let map = loaded.take_libraries()?;
        Ok(Self { loaded, libraries: Libraries::new(map), root: None, unreaped: None })
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Ebpf
    }

    fn attach(&mut self, root: TraceRoot) -> Result<(), Error> {
        if let TraceRoot::Command(gated) = &root {
            self.prepare(gated)?;
        }
        self.root = Some(root);
        Ok(())
    }

    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error> {
        let root = self.root.take().ok_or_else(|| unusable("there is nothing to trace"))?;
        let TraceHooks { sink, snapshots, tick } = hooks;
        tracer::beside(snapshots, |stops| self.run_with(root, options, sink, stops, tick))
    }

    fn detach(self: Box<Self>) -> DeferredCleanup {
        let unreaped = self.unreaped;
        DeferredCleanup::new(self, unreaped)
    }
}

fn unusable(reason: &str) -> Error {
    Error::Backend { backend: "ebpf", reason: reason.into() }
}

impl EbpfBackend {
    /// All that can be done for a command while it waits at its gate.
    fn prepare(&mut self, gated: &GatedCommand) -> Result<(), Error> {
        self.follow_gated(gated.pid, wire::COMMAND)?;
        self.loaded.attach_calls()?;
        if let Some(executable) = gated.executable() {
            self.libraries.learn_program(&executable); // it may end before its execve(2) has been told
            learn(&executable);
        }
        Ok(())
    }

    fn run_with(
        &mut self,
        target: TraceRoot,
        options: &TraceOptions,
        sink: &mut EventSink<'_>,
        stops: &TracerHandle,
        tick: &mut TickHook<'_>,
    ) -> Result<BackendReport, Error> {
        let root = target.pid();
        let command = matches!(target, TraceRoot::Command(_));
        let followed = if command { vec![root] } else { proc::with_descendants(root) };
        let start = now_ns();
        for &pid in &followed {
            if !command {
                self.follow(pid)?;
            }
            sink(RawEvent { ns: start, pid, tid: pid, kind: RawEventKind::Begin });
            let before = if command { IoTotals::default() } else { proc::own_io(pid).unwrap_or_default() };
            sink(RawEvent { ns: start, pid, tid: pid, kind: RawEventKind::Totals(before) });
        }
        if !command {
            self.loaded.attach_calls()?;
        }
        let mut released_ns = 0;
        if let TraceRoot::Command(gated) = target {
            if let Some(executable) = gated.executable().filter(|executable| may_be_held(executable)) {
                self.hold(gated.pid, &executable, stops)?;
            }
            released_ns = now_ns();
            gated.release()?;
        }
        let duty = OverheadBudget::new(now_ns(), options.exact);
        let mut run = Run {
            backend: self,
            decoder: Decoder::default(),
            duty,
            pause: SamplingGap::default(),
            images: ImageReads::default(),
            root,
            root_end: pidfd(root),
            command,
            released_ns,
            reaped: false,
            hidden: command,
            exit: None,
            stops,
            seen: VecDeque::new(),
            batch: Vec::new(),
            hurries: false,
            sink,
        };
        run.watch(options, tick)?;
        run.finish(&followed)
    }

    /// Has a command stop on its way, where nothing of its own has run yet.
    fn hold(&mut self, pid: u32, executable: &Path, stops: &TracerHandle) -> Result<(), Error> {
        let sees =
            self.libraries.sees_begin(executable) && !inherited::starts_blocked(breakpoint_traps::SIGNAL);
        let processes = self.loaded.take_same_processes().filter(|_| sees);
        let by_kernel = processes.is_some();
        let held = stops.hold(
            pid,
            processes.map_or(FirstStop::Exec, |processes| FirstStop::Library(Box::new(processes))),
        );
        if by_kernel && held { self.follow_gated(pid, wire::HELD) } else { Ok(()) }
    }

    /// From here on the kernel counts what a process does that runs already.
    fn follow(&mut self, pid: u32) -> Result<(), Error> {
        let (list, walker) = libraries::list_of(pid).unwrap_or((0, 0));
        self.count(pid, ProcessState { list, walker, ..ProcessState::EMPTY })
    }

    /// Or a command: `how` is [`wire::COMMAND`] or [`wire::HELD`].
    fn follow_gated(&mut self, pid: u32, how: u32) -> Result<(), Error> {
        self.count(pid, ProcessState { image: wire::GATED, command: how, ..ProcessState::EMPTY })
    }

    fn count(&mut self, pid: u32, state: ProcessState) -> Result<(), Error> {
        self.loaded.follow(pid, state).map_err(|error| Error::Backend {
            backend: "ebpf",
            reason: format!("process {pid} cannot be followed: {error}"),
        })
    }
}

impl Run<'_> {
    fn watch(&mut self, options: &TraceOptions, tick: &mut TickHook<'_>) -> Result<(), Error> {
        let end = options.limit.map(|limit| now_ns() + limit.as_nanos() as u64);
        let mut next_tick = now_ns() + TICK_NS;
        let mut begun = false;
        while self.exit.is_none() {
            let now = now_ns();
            if end.is_some_and(|end| now >= end) || (!self.command && options.stop.load(Ordering::Relaxed)) {
                break;
            }
            let until_tick = next_tick.saturating_sub(now);
            let until_end = end.map_or(u64::MAX, |end| end.saturating_sub(now));
            let ended = self.wait(self.duty.next_ns(now).min(until_tick).min(until_end));
            // First: where much happens, taking it takes time in which more does, and may have no end.
            self.steer()?;
            self.drain_some();
            let is_time = now_ns() + TICK_NS / 4 >= next_tick; // one interruption is better than two
            if is_time {
                tick(now_ns(), self.sink);
                if !std::mem::replace(&mut begun, true) {
                    code_pages::release(); // weir's start is not needed again; a command that ends before this is not to wait for it
                }
                next_tick = now_ns() + TICK_NS;
            }
            self.look_after_the_root(ended || (is_time && self.root_end.is_none()));
        }
        self.await_the_dying();
        Ok(())
    }

    /// Who killed the root may have killed others too (timeout, a shell's kill 0): what they lose is seen at their ends.
    fn await_the_dying(&mut self) {
        let end = now_ns() + LAST_NS;
        while self.exit.is_some() && self.backend.loaded.follows_any() && now_ns() < end {
            let mut others = self.backend.loaded.processes.keys().flatten();
            if !others.any(proc::is_dying) {
                return;
            }
            self.wait(TICK_NS / 4);
            self.drain();
        }
    }

    /// Its end is told by an event, unless that found no room. wait(2) may not be asked: it would take the stops
    /// from the thread that waits for them.
    fn look_after_the_root(&mut self, perhaps_ended: bool) {
        if perhaps_ended && self.exit.is_none() && proc::has_ended(self.root) {
            self.drain();
            let status = if self.command { self.reap() } else { 0 };
            self.exit.get_or_insert(decode::exit_of(status));
        }
    }

    /// Of a child that has ended; its status, or 0 if the thread of the stops was first.
    fn reap(&mut self) -> u32 {
        self.reaped = true;
        launch::reap(self.root)
    }

    fn take(&mut self, event: &[u8]) {
        let (root, hidden) = (self.root, self.hidden);
        let (sink, seen) = (&mut *self.sink, &mut self.seen);
        let note = self.decoder.take(event, &mut |raw: RawEvent| {
            while let Some(earlier) = seen.pop_front_if(|report| report.ns <= raw.ns) {
                sink(earlier);
            }
            let own = hidden && raw.pid == root;
            if !own || matches!(raw.kind, RawEventKind::Exec { .. }) {
                sink(raw);
            }
        });
        match note {
            Note::Plain => {}
            Note::Closed(pid) => self.pause.closed(pid),
            Note::Fork(child) => self.pause.born(child),
            Note::Exec { pid, exe, plain } => {
                let first = self.hidden && pid == self.root;
                self.hidden &= !first;
                self.duty.hurry(now_ns());
                if !plain {
                    // First: the program is on its way.
                    self.stops.consider(pid, &exe);
                    self.backend.libraries.learn_program(&exe);
                }
                // Of the command itself the kernel has left it out.
                if !first {
                    self.images.exec(pid, &exe);
                }
            }
            Note::Exit { pid, exit, high } => {
                if high {
                    self.sweep(Some(pid));
                }
                if let Some(report) = decode::exit_report(event, self.images.ended(pid)) {
                    (self.sink)(report);
                }
                self.pause.ended(pid);
                if pid == self.root {
                    self.exit = Some(exit);
                }
            }
        }
    }

    fn steer(&mut self) -> Result<(), Error> {
        let now = now_ns();
        if !self.duty.is_due(now) {
            return Ok(());
        }
        let since = self.duty.since_ns();
        let (calls, opens) = self.backend.loaded.calls_and_opens();
        match self.duty.step(now, calls, opens) {
            BudgetStep::Stay => Ok(()),
            BudgetStep::Pause => {
                self.pause_begins(since);
                Ok(())
            }
            BudgetStep::Look => {
                self.pause_ends(since);
                self.look_again()
            }
        }
    }

    fn finish(mut self, followed: &[u32]) -> Result<BackendReport, Error> {
        let now = now_ns();
        if self.duty.is_paused() {
            self.pause_ends(self.duty.since_ns());
        }
        self.duty.end(now);
        self.backend.loaded.detach_calls();
        self.drain();
        self.sweep(None);
        for &pid in followed.iter().filter(|&&pid| pid != self.root || self.exit.is_none()) {
            if let Some(totals) = proc::own_io(pid).map(|totals| totals.since(self.images.read_of(pid))) {
                (self.sink)(RawEvent { ns: now_ns(), pid, tid: pid, kind: RawEventKind::Totals(totals) });
            }
        }
        let tallies = self.backend.loaded.tallies();
        let unreadable = self.backend.loaded.events.unreadable.take();
        self.backend.unreaped = (self.exit.is_some() && self.command && !self.reaped).then_some(self.root);
        Ok(BackendReport {
            exit: self.exit,
            blind_spots: blind_spots::sentences(&tallies, unreadable.as_ref(), self.backend.loaded.sees_exec),
            observed_calls: tallies.calls,
            observed_ns: self.duty.watched_ns,
            gap_ns: self.duty.unwatched_ns,
            lost_events: tallies.lost + u64::from(unreadable.is_some()),
            released_ns: self.released_ns,
        })
    }
}

fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Another user's rights are not given to a program that somebody traces without all rights himself.
fn may_be_held(executable: &Path) -> bool {
    let mode = std::fs::metadata(executable).map(|file| file.permissions().mode());
    mode.is_ok_and(|mode| mode & (libc::S_ISUID | libc::S_ISGID) == 0)
}

/// What will be asked about a program when it has begun to run, and stands still for the answer.
fn learn(exe: &Path) {
    let _answers_are_kept = weir_walkers::needs_stops(exe);
}
