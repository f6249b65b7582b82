//! What every engine takes and gives: a target, options, callbacks, and how it ended.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_model::trace::{Buffer, Exit, Moment};
use weir_sys::code_pages;
use weir_sys::launch::{GatedCommand, reap_after};

use crate::raw::RawEvent;

/// Whom to watch.
#[derive(Debug)]
pub enum Target {
    /// A command that waits at its gate; its descendants too.
    Command(GatedCommand),
    /// A process that runs already, all its threads, and whatever it starts from now on.
    Process(u32),
}

impl Target {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Command(gated) => gated.pid,
            Self::Process(pid) => *pid,
        }
    }
}

/// How to watch.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// See every call, whatever it costs.
    pub exact: bool,
    /// Look into the buffers before each call as well (ptrace only).
    pub every_call: bool,
    /// Stop watching after this time.
    pub limit: Option<Duration>,
    /// Set by Ctrl-C. A process that was attached to is let go; a command got the signal itself, and is
    /// watched until it ends.
    pub stop: Arc<AtomicBool>,
}

/// How watching ended.
#[derive(Debug, Default)]
pub struct Ended {
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
    /// What can wait until the recording has been told.
    pub rest: Rest,
}

/// What weir need not wait for before it says what it saw, but before it ends: that the kernel is done with the command, which
/// it tells of at the beginning of its end, and with the engine. Done when dropped.
#[derive(Default)]
#[must_use = "the command may not have ended yet"]
pub struct Rest {
    engine: Option<Box<dyn std::any::Any + Send>>,
    ending: Option<u32>,
}

impl Rest {
    /// The kernel takes half a millisecond to unload an engine; on a thread beside the report that would be in its way, and in
    /// that of the command's end. `ending`: a child that is about to end.
    pub fn new(engine: impl Send + 'static, ending: Option<u32>) -> Self {
        Self { engine: Some(Box::new(engine)), ending }
    }
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest").field("ending", &self.ending).finish_non_exhaustive()
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        drop(self.engine.take());
        self.ending.map(|ending| reap_after(ending, code_pages::release));
    }
}

/// Takes the reports. The ptrace engine calls it from a thread of its own, hence Send.
pub type SendSink<'a> = dyn FnMut(RawEvent) + Send + 'a;

/// Looks into the stream buffers of a process that is stopped.
pub trait Look: Send {
    /// What is in them at such a moment.
    fn look(&mut self, pid: u32, moment: Moment) -> Vec<Buffer>;

    /// Its C library stands, with the list of its streams at this address, and nothing was written yet: what is to be known of
    /// its writes has to be begun with now. The program waits for that.
    fn begins(&mut self, pid: u32, list: u64) {
        let _ = (self.look(pid, Moment::Sample), list);
    }

    /// It goes on: what had time until then. The kernel wakes a tracer on the very processor where a program stopped for it, and
    /// that has its turn when this is done.
    fn begun(&mut self, pid: u32) {
        let _nothing = pid;
    }
}

impl<F: FnMut(u32, Moment) -> Vec<Buffer> + Send> Look for F {
    fn look(&mut self, pid: u32, moment: Moment) -> Vec<Buffer> {
        self(pid, moment)
    }
}

/// Called about every 100 ms with CLOCK_MONOTONIC.
pub type Tick<'a> = dyn FnMut(u64, &mut SendSink<'_>) + Send + 'a;
