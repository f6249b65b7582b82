//! Follows a command and its descendants from outside: ptrace(2), no library loaded, no system call stopped
//! unless bytes were written ahead of a program.
//!
//! Between births, changes of image and deaths the follower sleeps. It costs nothing then; with a delay to keep,
//! a look into each process's streams a tick. When the command has ended it leaves, and descendants that live on
//! go on untouched – after whatever was written ahead of them is settled, so that nothing comes twice. Killed
//! itself, it leaves all of them running; only bytes that it had written ahead come a second time then.

pub(crate) mod event_loop;
pub(crate) mod handler;
mod interruptible;
#[cfg(test)]
mod kill_test;
mod lifecycle;
mod stops;
pub(crate) mod tracee_file;
pub(crate) mod tracees;

use std::path::PathBuf;
use std::time::Duration;

use weir_sys::launch::GatedCommand;
use weir_sys::ptrace::registers;
use weir_sys::ptrace::wait_until_gone;

pub use weir_model::run::{RescuedBytes, RunOutcome, SavedFile};

pub use handler::LifecycleHandler;
pub use tracees::Tracees;

/// What is wished for a command.
#[derive(Debug, Clone, Default)]
pub struct SuperviseOptions {
    /// What a death would lose is brought to where it was meant for.
    pub rescue: bool,
    /// No byte waits longer in a stream.
    pub max_delay: Option<Duration>,
    /// What waits in a stream at a fork comes once, not once from each process.
    pub fix_fork: bool,
    /// Rescued bytes are saved here when they cannot be written; None: the current directory, else $TMPDIR.
    pub save_in: Option<PathBuf>,
}

/// Why a command could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// It could not be started, or not be seen.
    #[error(transparent)]
    Probe(#[from] weir_sys::Error),
    /// Following it does not work, or does harm.
    #[error("the command cannot be followed: {0}")]
    Refused(String),
}

/// What following this command will not do, and why, a sentence each; to be said before it starts.
pub fn unable(gated: &GatedCommand, wishes: &SuperviseOptions) -> Vec<String> {
    let mut said = Vec::new();
    if !registers::KNOWN && (wishes.max_delay.is_some() || wishes.fix_fork) {
        said.push("--max-delay and --fix-fork from outside need x86-64".to_string());
    }
    said.extend(lifecycle::unfit(gated));
    said
}

/// Follows the command until it has ended. `others` are told of everything before weir's own followers.
pub fn follow(
    gated: GatedCommand,
    wishes: &SuperviseOptions,
    others: Vec<Box<dyn LifecycleHandler + Send>>,
) -> Result<RunOutcome, SuperviseError> {
    let passed_on = crate::launch::signals::pass_on(gated.pid);
    let followers = followers(wishes, others);
    let save_in = wishes.save_in.clone();
    let followed = move || {
        // SAFETY: asks for a number.
        let task = unsafe { libc::gettid() };
        (task, event_loop::run(gated, followers, save_in))
    };
    // A thread of its own: its end lets all tracees go, whatever they are doing, without stopping them.
    let thread = std::thread::Builder::new().name("weir-follow".into()).spawn(followed);
    let thread =
        thread.map_err(|error| SuperviseError::Refused(format!("a thread cannot be started: {error}")))?;
    let (task, outcome) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    wait_until_gone(task);
    drop(passed_on);
    outcome
}

fn followers(
    wishes: &SuperviseOptions,
    others: Vec<Box<dyn LifecycleHandler + Send>>,
) -> Vec<Box<dyn LifecycleHandler + Send>> {
    let mut all = others;
    let from_outside = registers::KNOWN;
    if let Some(delay) = wishes.max_delay.filter(|_| from_outside) {
        all.push(Box::new(crate::delay::DelayHandler::new(delay)));
    }
    if wishes.fix_fork && from_outside {
        all.push(Box::new(crate::delay::fork_flush::ForkHandler));
    }
    if wishes.rescue {
        all.push(Box::new(crate::rescue::RescueHandler::default()));
    }
    all
}
