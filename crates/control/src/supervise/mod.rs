//! Supervises a command and its descendants by ptrace(2), without a preload library.
//!
//! The supervisor sleeps between lifecycle events, so it costs nothing then; with a bounded delay it reads each
//! process's streams once a tick. System calls stop only in processes that have bytes written ahead of them.
//!
//! The supervisor detaches when the command has ended and no bytes are written ahead of a descendant, or at the second signal that
//! asks it to end after the command. If weir is
//! killed, all tracees run on, and only bytes that were written ahead are written twice.

mod deferred_fork;
mod departure;
mod early_writes;
pub(crate) mod event_loop;
mod final_state;
mod fork_copies;
pub(crate) mod handler;
mod hold;
mod inherited_bytes;
pub(crate) mod interruptible;
#[cfg(test)]
mod kill_test;
mod lifecycle;
mod other_tracers;
mod pending_streams;
mod results;
mod stops;
pub(crate) mod tracee;
pub(crate) mod tracees;

use std::path::PathBuf;
use std::time::Duration;

use weir_model::run::RunOutcome;
use weir_sys::companion::Companion;
use weir_sys::hang_guard::{GuardedWork, HangGuard};
use weir_sys::launch::GatedCommand;
use weir_sys::limits;
use weir_sys::ptrace::wait_until_gone;

use crate::delay::DelayHandler;
use crate::delay::fork_flush::ForkHandler;
use crate::launch::signals;
use crate::rescue::RescueHandler;

pub use handler::{Fork, LifecycleHandler};
pub(crate) use pending_streams::PythonText;
pub(crate) use tracee::TracedProcess;
pub use tracees::Tracees;

/// The name of the thread that supervises, which is the tracer of its processes.
pub(crate) const SUPERVISOR_NAME: &str = "weir-supervise";

/// The tasks of a supervisor.
#[derive(Debug, Clone, Default)]
pub struct SuperviseOptions {
    /// Write the pending bytes of processes that die.
    pub rescue: bool,
    /// The longest time that a byte stays pending.
    pub max_delay: Option<Duration>,
    /// Write the bytes that are pending at a fork once.
    pub fix_fork: bool,
    /// The folder for rescued bytes that their file does not take; None: the current directory, then $TMPDIR.
    pub save_in: Option<PathBuf>,
}

/// The reason why a command could not be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    #[error(transparent)]
    #[allow(missing_docs)]
    Probe(#[from] weir_sys::Error),
    /// The command runs under another tracer, or the supervisor lacks a timer or thread.
    #[error("the command cannot be supervised: {0}")]
    Refused(String),
}

/// Returns a sentence for each task that the supervisor cannot do for a command that has not started.
pub fn limitations(gated: &GatedCommand) -> Vec<String> {
    lifecycle::limitation(gated).into_iter().collect()
}

/// Supervises the command until it has ended. `handlers` run before the supervisor's own handlers. If a read of a process
/// hangs, weir stops supervising and only waits for the command and for `companion`.
pub fn supervise(
    gated: GatedCommand,
    options: &SuperviseOptions,
    handlers: Vec<Box<dyn LifecycleHandler + Send>>,
    companion: Option<&Companion>,
) -> Result<RunOutcome, SuperviseError> {
    weir_sys::signals::catch_file_size_limit();
    let forwarding = signals::forward(gated.pid);
    let handlers = with_own_handlers(options, handlers);
    let save_in = options.save_in.clone();
    let _guard = HangGuard::start(GuardedWork::Run, Some(gated.pid), companion);
    let supervise = move || {
        // SAFETY: gettid returns a number and has no other effect.
        let task = unsafe { libc::gettid() };
        (task, event_loop::run(gated, handlers, save_in))
    };
    // The end of a tracer thread detaches all its tracees without stopping them, so the supervisor is a thread.
    let thread = std::thread::Builder::new().name(SUPERVISOR_NAME.into()).spawn(supervise);
    let thread = thread.map_err(|error| SuperviseError::Refused(limits::no_thread(&error)))?;
    let (task, outcome) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    wait_until_gone(task);
    drop(forwarding);
    outcome
}

fn with_own_handlers(
    options: &SuperviseOptions,
    mut handlers: Vec<Box<dyn LifecycleHandler + Send>>,
) -> Vec<Box<dyn LifecycleHandler + Send>> {
    if let Some(delay) = options.max_delay {
        handlers.push(Box::new(DelayHandler::new(delay)));
    }
    // After a fork weir cannot know which process writes the common bytes, and would write both copies early.
    if options.fix_fork || options.max_delay.is_some() {
        handlers.push(Box::new(ForkHandler { is_requested: options.fix_fork }));
    }
    if options.rescue {
        handlers.push(Box::new(RescueHandler::default()));
    }
    handlers
}
