//! The interface of a tracing backend.

use weir_model::trace::{BackendKind, Buffer, Exit, SnapshotMoment};
use weir_sys::launch::{GatedCommand, reap_after};
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{Error, code_pages};

use crate::event::EventSink;
use crate::options::TraceOptions;

/// The root process of a trace. [`TraceBackend::attach`] takes ownership of it.
#[derive(Debug)]
pub enum TraceRoot {
    /// A command that has not called execve(2) yet. Its descendants are traced too.
    Command(GatedCommand),
    /// A running process. All of its threads are traced, and the children that it starts from now on.
    Process(ProcessIdentity),
}

impl TraceRoot {
    /// Returns the PID of the root process.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Command(gated) => gated.pid,
            Self::Process(process) => process.pid(),
        }
    }
}

/// A way to observe the system calls of processes.
///
/// The caller calls `probe`, `attach`, `run` and `detach` once each, in this order and from one thread.
/// Dropping a backend at any point detaches it too: no process stays stopped or traced.
pub trait TraceBackend {
    /// Prepares the backend without touching any process.
    ///
    /// Fails with [`Error::Backend`] if the backend does not work on this kernel or with these privileges; the caller
    /// then tries the next backend.
    fn probe(options: &TraceOptions) -> Result<Self, Error>
    where
        Self: Sized;

    /// Returns the kind under which the recording names this backend.
    fn kind(&self) -> BackendKind;

    /// Takes ownership of the root process and does all work that is possible before the recording starts.
    ///
    /// A command stays at its gate, so it executes nothing yet. If this fails, the command's process ends without an
    /// execve(2).
    fn attach(&mut self, root: TraceRoot) -> Result<(), Error>;

    /// Opens the gate of a command and emits events until the root process ends, `options.limit` passes or, for an
    /// attached process, `options.stop` is set.
    ///
    /// Blocks the calling thread. The hooks may run on another thread of the backend, never on two at once. Fails with
    /// [`Error::Command`] if execve(2) fails, and with [`Error::Process`] if the root process may not be traced or has
    /// ended.
    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error>;

    /// Ends the observation. The caller drops the returned cleanup after it has printed its report.
    fn detach(self: Box<Self>) -> DeferredCleanup;
}

/// The callbacks of a backend. The backend borrows them for the duration of [`TraceBackend::run`].
pub struct TraceHooks<'h, 'c> {
    /// Receives every event, in order of time for each process.
    pub sink: &'h mut EventSink<'c>,
    /// Reads the user-space buffers of stopped processes.
    pub snapshots: &'h mut (dyn BufferSnapshots + 'c),
    /// Runs every 20 to 100 ms, depending on the backend, between two events.
    pub tick: &'h mut TickHook<'c>,
}

/// The result of [`TraceBackend::run`].
#[derive(Debug, Default)]
pub struct BackendReport {
    /// The exit of the root process; None if it still runs.
    pub exit: Option<Exit>,
    /// Sentences for the report about processes, calls and buffers that this observation lacks.
    pub blind_spots: Vec<String>,
    /// Sentences about other effects and limits of this observation.
    pub remarks: Vec<String>,
    /// System calls that a stop or an eBPF handler observed.
    pub observed_calls: u64,
    /// Time inside sampling windows, summed over all processes.
    pub observed_ns: u64,
    /// Time inside sampling gaps, in which only totals are known, summed over all processes.
    pub gap_ns: u64,
    /// Events dropped because a buffer was full.
    pub lost_events: u64,
    /// Calls of the observed processes that were not counted, at most.
    pub uncounted_calls: u64,
    /// Time for which stops delayed the observed processes, summed over them; 0 if the backend stops none or did not measure it.
    pub stopped_ns: u64,
    /// When the gate of a command opened, by [`weir_sys::clock::now_ns`]; 0 for an attached process.
    pub released_ns: u64,
}

/// Cleanup that may run after the report: unloading the backend, then reaping the child. Runs on drop.
#[derive(Default)]
#[must_use = "the command may not have ended yet"]
pub struct DeferredCleanup {
    backend: Option<Box<dyn std::any::Any + Send>>,
    ending: Option<u32>,
}

impl DeferredCleanup {
    /// Defers dropping `backend` and reaping `ending`, a child that has begun to exit.
    ///
    /// Unloading eBPF programs takes the kernel half a millisecond. A second thread would compete for the processor with
    /// the report and with the exit of the command, so the work is deferred instead.
    pub fn new(backend: impl Send + 'static, ending: Option<u32>) -> Self {
        Self { backend: Some(Box::new(backend)), ending }
    }
}

impl std::fmt::Debug for DeferredCleanup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeferredCleanup").field("ending", &self.ending).finish_non_exhaustive()
    }
}

impl Drop for DeferredCleanup {
    fn drop(&mut self) {
        drop(self.backend.take());
        self.ending.map(|ending| reap_after(ending, code_pages::release));
    }
}

/// Reads the user-space buffers of processes for a backend.
///
/// The backend calls it on its tracing thread while the process is stopped, or blocked in a system call, so every method
/// delays the process.
pub trait BufferSnapshots: Send {
    /// Reads the buffers of process `pid`. Returns an empty list if the process has no known runtime or its memory cannot be read.
    fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer>;

    /// Returns the addresses of those buffers of the last snapshot whose bytes the process may have written without noting it
    /// in the buffer. Call it after a snapshot at the end of a process.
    fn flushing(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Prepares for a new image whose C library is initialized and has written nothing yet. `list` is the address of its
    /// list of streams. The process stays stopped meanwhile.
    fn image_started(&mut self, pid: u32, list: u64) {
        let _ = (self.snapshot(pid, SnapshotMoment::Sample), list);
    }

    /// Does work that could wait until process `pid` runs again. The kernel wakes the tracer on the processor on which
    /// the process stopped, so the process gets that processor when this method returns.
    fn resumed(&mut self, pid: u32) {
        let _nothing = pid;
    }
}

impl<F: FnMut(u32, SnapshotMoment) -> Vec<Buffer> + Send> BufferSnapshots for F {
    fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer> {
        self(pid, moment)
    }
}

/// A periodic callback. Its arguments are the time (CLOCK_MONOTONIC, nanoseconds) and the sink for events of its own.
pub type TickHook<'a> = dyn FnMut(u64, &mut EventSink<'_>) + Send + 'a;
