//! The interface of a tracing backend.

use weir_model::trace::{BackendKind, Buffer, Exit, SnapshotMoment};
use weir_sys::launch::{GatedCommand, reap_after};
use weir_sys::{Error, code_pages};

use crate::event::EventSink;
use crate::options::TraceOptions;

/// The root process of a trace, as a backend takes it over.
#[derive(Debug)]
pub enum TraceRoot {
    /// A command that waits at its gate; its descendants too.
    Command(GatedCommand),
    /// A process that runs already, all its threads, and whatever it starts from now on.
    Process(u32),
}

impl TraceRoot {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Command(gated) => gated.pid,
            Self::Process(pid) => *pid,
        }
    }
}

/// A way to observe the system calls of processes.
///
/// The methods are called in the order `probe`, `attach`, `run`, `detach`. A backend that is dropped instead detaches too.
pub trait TraceBackend {
    /// Prepares the backend. Fails with [`Error::Backend`] if it cannot work on this machine with these rights.
    fn probe(options: &TraceOptions) -> Result<Self, Error>
    where
        Self: Sized;

    /// Returns the kind that the recording names.
    fn kind(&self) -> BackendKind;

    /// Takes over the root process and does all that can be done before the recording starts. A command stays at its gate.
    fn attach(&mut self, root: TraceRoot) -> Result<(), Error>;

    /// Releases a command, and emits events until the root process ends, `options.limit` passes or `options.stop` is set.
    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error>;

    /// Ends the observation. Cleanup that the report need not wait for is returned.
    fn detach(self: Box<Self>) -> DeferredCleanup;
}

/// The callbacks of a backend.
pub struct TraceHooks<'h, 'c> {
    /// Receives the events.
    pub sink: &'h mut EventSink<'c>,
    /// Reads the user-space buffers of stopped processes.
    pub snapshots: &'h mut (dyn BufferSnapshots + 'c),
    /// Called about every 100 ms.
    pub tick: &'h mut TickHook<'c>,
}

/// What a backend knows at the end of a run.
#[derive(Debug, Default)]
pub struct BackendReport {
    /// How the root process ended; None: it runs on.
    pub exit: Option<Exit>,
    /// What could not be seen, in sentences.
    pub blind: Vec<String>,
    /// Calls that a stop or a handler saw.
    pub seen_calls: u64,
    /// Time in which calls were seen one by one, over all processes.
    pub watched_ns: u64,
    /// Time in which only totals were kept, over all processes.
    pub unwatched_ns: u64,
    /// Reports that found no room.
    pub lost_events: u64,
    /// When a command was let go, by [`now_ns`]; 0: there was none to be let go.
    pub released_ns: u64,
}

/// What weir need not wait for before it says what it saw, but before it ends: that the kernel is done with the command, which
/// it tells of at the beginning of its end, and with the engine. Done when dropped.
#[derive(Default)]
#[must_use = "the command may not have ended yet"]
pub struct DeferredCleanup {
    backend: Option<Box<dyn std::any::Any + Send>>,
    ending: Option<u32>,
}

impl DeferredCleanup {
    /// The kernel takes half a millisecond to unload an engine; on a thread beside the report that would be in its way, and in
    /// that of the command's end. `ending`: a child that is about to end.
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

/// Looks into the stream buffers of a process that is stopped.
pub trait BufferSnapshots: Send {
    /// What is in them at such a moment.
    fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer>;

    /// Its C library stands, with the list of its streams at this address, and nothing was written yet: what is to be known of
    /// its writes has to be begun with now. The program waits for that.
    fn image_started(&mut self, pid: u32, list: u64) {
        let _ = (self.snapshot(pid, SnapshotMoment::Sample), list);
    }

    /// It goes on: what had time until then. The kernel wakes a tracer on the very processor where a program stopped for it, and
    /// that has its turn when this is done.
    fn resumed(&mut self, pid: u32) {
        let _nothing = pid;
    }
}

impl<F: FnMut(u32, SnapshotMoment) -> Vec<Buffer> + Send> BufferSnapshots for F {
    fn snapshot(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer> {
        self(pid, moment)
    }
}

/// Called with CLOCK_MONOTONIC in nanoseconds, and the sink.
pub type TickHook<'a> = dyn FnMut(u64, &mut EventSink<'_>) + Send + 'a;
