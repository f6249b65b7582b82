//! The eBPF backend: programs at tracepoints count calls and bytes per stream in the kernel and submit rare events.
//! Needs root or CAP_BPF and CAP_PERFMON, and a kernel with BTF.

mod attach;
mod blind_spots;
mod bpf_syscall;
mod btf_file;
mod btf_types;
mod command_start;
mod decode;
mod drain;
mod exit_writes;
mod first_processes;
mod first_totals;
#[doc(hidden)] // for fuzz/ only
pub mod fuzzing;
mod go_exit_watch;
mod hooks;
mod image_reads;
mod kernel_file;
mod kernel_types;
mod kprobe;
mod libraries;
mod load;
mod overhead_budget;
mod ring_buffer;
mod sampling_gaps;
mod shared_types;
mod syscall_classes;
mod test_settings;
mod tracer;
mod tracer_requests;
mod tracer_wakeup;
mod wide_text;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use weir_model::trace::{BackendKind, Exit};
use weir_sys::clock::now_ns;
use weir_sys::launch::{self, GatedCommand};
use weir_sys::pidfd::open_process;
use weir_sys::{Error, code_pages, held_signals, inherited, proc, unkillable};
use weir_trace_api::{
    BackendReport, DeferredCleanup, EventSink, RawEvent, RawEventKind, TickHook, TraceBackend, TraceHooks,
    TraceOptions, TraceRoot, breakpoint_traps,
};

use blind_spots::RunErrors;
use decode::Decoder;
use first_totals::FirstTotals;
use image_reads::ImageReads;
use libraries::Libraries;
use load::{Loaded, unusable};
use overhead_budget::{BudgetStep, OverheadBudget};
use sampling_gaps::SamplingGap;
use tracer_requests::{FirstStop, TracerHandle};

pub use attach::HookChoice;

/// Loads and attaches the programs, and returns the kernel hook of each ability. Fails if this kernel or the present rights do not
/// allow the backend.
pub fn hooks(btf: Option<&std::path::Path>) -> Result<Vec<HookChoice>, Error> {
    load::load(false, btf).map(|loaded| loaded.hooks)
}

/// How often the tick hook runs: a screen is redrawn at most that often.
const TICK_NS: u64 = 20_000_000;
/// How long to wait for processes that were killed together with the root; a busy machine needs most of it.
const KILLED_TOGETHER_NS: u64 = 1_000_000_000;

/// The backend. It owns the loaded programs.
pub struct EbpfBackend {
    loaded: Loaded,
    libraries: Libraries,
    root: Option<TraceRoot>,
    first_totals: FirstTotals,
    /// A child that has exited and was not waited for.
    unreaped: Option<u32>,
}

/// The state of [`TraceBackend::run`].
struct Run<'a> {
    backend: &'a mut EbpfBackend,
    decoder: Decoder,
    budget: OverheadBudget,
    gap: SamplingGap,
    /// Why the program at system calls could not be attached again after a gap.
    unattached: Option<io::Error>,
    image_reads: ImageReads,
    root: u32,
    /// A pidfd, readable when the root has exited; None: the state in /proc is polled.
    root_end: Option<OwnedFd>,
    /// The root is weir's own child.
    is_command: bool,
    /// When the command's gate opened.
    released_ns: u64,
    reaped: bool,
    /// The root has not called execve(2) yet: it is still weir's code.
    before_exec: bool,
    exit: Option<Exit>,
    tracer: &'a TracerHandle<'a>,
    /// Events of the tracer, until the kernel's earlier events have been sent.
    tracer_events: VecDeque<RawEvent>,
    /// Buffer for a batch of events from the ring buffer, reused.
    batch: Vec<u8>,
    /// weir has raised its scheduling priority.
    has_priority: bool,
    sink: &'a mut EventSink<'a>,
}

impl TraceBackend for EbpfBackend {
    fn probe(options: &TraceOptions) -> Result<Self, Error> {
        let mut loaded = load::load(options.exact, options.btf.as_deref())?;
        let map = loaded.take_libraries()?;
        let (libraries, first_totals) = (Libraries::new(map), FirstTotals::default());
        Ok(Self { loaded, libraries, root: None, first_totals, unreaped: None })
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
        let processes = self.loaded.take_processes_copy();
        tracer::run_beside(snapshots, processes, |tracer| self.run_with(root, options, sink, tracer, tick))?
    }

    fn detach(self: Box<Self>) -> DeferredCleanup {
        let unreaped = self.unreaped;
        DeferredCleanup::new(self, unreaped)
    }
}

impl EbpfBackend {
    /// Does all that is possible for a command while it waits at its gate.
    fn prepare(&mut self, gated: &GatedCommand) -> Result<(), Error> {
        self.add_gated(gated.pid, shared_types::COMMAND_CHILD)?;
        self.loaded.attach_calls()?;
        if let Some(executable) = gated.executable() {
            self.libraries.add_executable(&executable); // now, because it may exit before its execve(2) event is read
            warm_up(&executable);
        }
        Ok(())
    }

    fn run_with(
        &mut self,
        target: TraceRoot,
        options: &TraceOptions,
        sink: &mut EventSink<'_>,
        tracer: &TracerHandle,
        tick: &mut TickHook<'_>,
    ) -> Result<BackendReport, Error> {
        let root = target.pid();
        let is_command = matches!(target, TraceRoot::Command(_));
        let processes = self.add_processes(root, is_command, sink, tracer)?;
        if let TraceRoot::Process(process) = &target
            && !process.is_current()
        {
            // Its end came before the kernel programs knew it, so they would follow the next process with its number.
            let source = io::Error::from_raw_os_error(libc::ESRCH);
            return Err(Error::Process { call: "read of /proc/PID/stat", pid: root, source });
        }
        let mut released_ns = 0;
        if let TraceRoot::Command(gated) = target {
            if let Some(executable) =
                gated.executable().filter(|executable| command_start::may_be_traced(executable))
            {
                self.stop_at_start(gated.pid, &executable, tracer)?;
            }
            held_signals::begin();
            released_ns = now_ns();
            gated.release()?;
        }
        let mut run = Run {
            backend: self,
            decoder: Decoder::default(),
            budget: OverheadBudget::new(now_ns(), options.exact),
            gap: SamplingGap::default(),
            unattached: None,
            image_reads: ImageReads::default(),
            root,
            root_end: open_process(root).ok(),
            is_command,
            released_ns,
            reaped: false,
            before_exec: is_command,
            exit: None,
            tracer,
            tracer_events: VecDeque::new(),
            batch: Vec::new(),
            has_priority: false,
            sink,
        };
        run.observe(options, tick);
        Ok(run.finish(&processes))
    }

    /// Arranges that the tracer stops a command before its own code runs.
    fn stop_at_start(&mut self, pid: u32, executable: &Path, tracer: &TracerHandle) -> Result<(), Error> {
        let at_library = !command_start::is_launcher(executable)
            && self.libraries.will_find_streams(executable)
            && !inherited::starts_blocked(breakpoint_traps::SIGNAL);
        let processes = self.loaded.take_processes_copy().filter(|_| at_library);
        let by_kernel = processes.is_some();
        let stop = processes.map_or(FirstStop::Exec, |processes| FirstStop::Library(Box::new(processes)));
        let seized = tracer.request_first_stop(pid, stop);
        if by_kernel && seized { self.add_gated(pid, shared_types::COMMAND_STOPS) } else { Ok(()) }
    }
}

impl Run<'_> {
    /// Handles events until the root exits, the time limit passes or the user stops an attached trace.
    fn observe(&mut self, options: &TraceOptions, tick: &mut TickHook<'_>) {
        let end = options.limit.map(|limit| now_ns() + limit.as_nanos() as u64);
        let mut next_tick = now_ns() + TICK_NS;
        let mut ticked = false;
        while self.exit.is_none() {
            let now = now_ns();
            let asked = !self.is_command && options.stop.load(Ordering::Relaxed);
            if asked || end.is_some_and(|end| now >= end) || unkillable::leaving().is_some() {
                break;
            }
            let until_tick = next_tick.saturating_sub(now);
            let until_end = end.map_or(u64::MAX, |end| end.saturating_sub(now));
            let ended = self.wait(self.budget.next_ns(now).min(until_tick).min(until_end));
            // Before the drain: with a busy program the drain takes long, as new events arrive meanwhile.
            self.apply_budget();
            self.drain_batch();
            let tick_due = now_ns() + TICK_NS / 4 >= next_tick; // a tick slightly early saves a wakeup
            if tick_due {
                tick(now_ns(), self.sink);
                if !std::mem::replace(&mut ticked, true) {
                    code_pages::release(); // of weir's start-up; not earlier, because it would delay the end of a short command
                }
                next_tick = now_ns() + TICK_NS;
            }
            self.check_root(ended || (tick_due && self.root_end.is_none()));
        }
        self.await_killed_processes();
    }

    /// Waits for processes that were killed together with the root (by timeout(1), or a shell's `kill 0`), because their lost
    /// bytes are known when they exit.
    fn await_killed_processes(&mut self) {
        let end = now_ns() + KILLED_TOGETHER_NS;
        while self.exit.is_some() && self.backend.loaded.has_processes() && now_ns() < end {
            let mut remaining = self.backend.loaded.processes.keys().flatten();
            if !remaining.any(proc::is_dying) {
                return;
            }
            self.wait(TICK_NS / 4);
            self.drain();
        }
    }

    /// Handles an exit of the root whose event was dropped. It does not call wait(2), which would take stops from the
    /// tracer thread.
    fn check_root(&mut self, may_have_exited: bool) {
        if may_have_exited && self.exit.is_none() && proc::has_ended(self.root) {
            self.drain();
            let status = if self.is_command { self.reap() } else { 0 };
            self.exit.get_or_insert(decode::exit_of(status));
        }
    }

    /// Reaps the command. Returns its status, or 0 if the tracer thread has reaped it.
    fn reap(&mut self) -> u32 {
        self.reaped = true;
        launch::reap(self.root)
    }

    /// Begins or ends a sampling gap if the overhead budget requires it.
    fn apply_budget(&mut self) {
        let now = now_ns();
        if !self.budget.is_due(now) {
            return;
        }
        let since = self.budget.since_ns();
        let (calls, opens) = self.backend.loaded.calls_and_path_calls();
        match self.budget.step(now, calls, opens) {
            BudgetStep::Stay => {}
            BudgetStep::BeginGap => self.begin_gap(since),
            BudgetStep::BeginWindow => {
                let processes = self.end_gap(since);
                self.resume_sampling(processes);
            }
        }
    }

    /// Sends the remaining counters and totals. `processes` are those of [`EbpfBackend::add_processes`].
    fn finish(mut self, processes: &[u32]) -> BackendReport {
        let now = now_ns();
        if self.budget.is_in_gap() {
            self.end_gap(self.budget.since_ns());
        }
        self.budget.end(now);
        self.backend.loaded.detach_calls();
        self.drain();
        // The last drain may have left some.
        self.tracer_events.drain(..).for_each(&mut *self.sink);
        self.sweep(None);
        for &pid in processes.iter().filter(|&&pid| pid != self.root || self.exit.is_none()) {
            if let Some(totals) = self.totals(pid) {
                (self.sink)(RawEvent { ns: now_ns(), pid, tid: pid, kind: RawEventKind::Totals(totals) });
            }
        }
        let tallies = self.backend.loaded.tallies();
        let errors = RunErrors {
            unreadable: self.backend.loaded.events.unreadable.take(),
            unattached: self.unattached.take(),
        };
        self.backend.unreaped = (self.exit.is_some() && self.is_command && !self.reaped).then_some(self.root);
        BackendReport {
            exit: self.exit,
            blind_spots: blind_spots::sentences(&tallies, &errors, &self.backend.loaded.losses),
            observed_calls: tallies.calls,
            observed_ns: self.budget.observed_ns,
            gap_ns: self.budget.unobserved_ns,
            lost_events: tallies.lost_events + u64::from(errors.unreadable.is_some()),
            uncounted_calls: tallies.uncounted_calls(),
            released_ns: self.released_ns,
            ..BackendReport::default()
        }
    }
}

/// Has the walkers examine and cache the executable now, because the tracer asks while the process is stopped.
fn warm_up(exe: &Path) {
    let _cached = weir_walkers::needs_stops(exe);
}
