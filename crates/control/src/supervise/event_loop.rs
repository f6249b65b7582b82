//! The follower's loop, and how it begins and ends.

use std::path::PathBuf;
use std::time::Duration;

use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
use weir_sys::launch::GatedCommand;
use weir_sys::proc;
use weir_sys::ptrace;

use super::{RunOutcome, SuperviseError};
use crate::delay::write_ahead::settle;
use crate::supervise::handler::LifecycleHandler;
use crate::supervise::tracees::{TracedProcess, Tracees};

/// How soon a process that waits for its end, or to be known, is looked at again.
const SOON_NS: u64 = 2_000_000;

/// How often it is tried, when the command has ended, to take out of streams what was written ahead of them.
const LAST_NS: u64 = 20_000_000;

pub(crate) struct Supervisor {
    pub world: Tracees,
    pub followers: Vec<Box<dyn LifecycleHandler + Send>>,
    /// The root, until it has become the command.
    pub gated: Option<GatedCommand>,
    /// Processes whose last thread waits for a follower: process, thread, status, and which follower.
    pub ending: Vec<(u32, u32, i32, usize)>,
    pub exit: Option<Exit>,
    /// How often the followers want their tick, and when the next one is.
    every: Option<Duration>,
    tick_at: u64,
}

/// Follows a command from its gate to its end.
pub(crate) fn run(
    gated: GatedCommand,
    followers: Vec<Box<dyn LifecycleHandler + Send>>,
    save_in: Option<PathBuf>,
) -> Result<RunOutcome, SuperviseError> {
    let mut run = Supervisor::new(gated.pid, followers, save_in)?;
    run.take(gated)?;
    run.watch()?;
    if let Some(mut gated) = run.gated.take() {
        // It ended before it became the command: the gate's pipe says why.
        gated.answer()?;
    }
    Ok(run.outcome())
}

impl Supervisor {
    pub(crate) fn new(
        root: u32,
        followers: Vec<Box<dyn LifecycleHandler + Send>>,
        save_in: Option<PathBuf>,
    ) -> Result<Supervisor, SuperviseError> {
        let world = Tracees::new(root, save_in).map_err(|error| {
            SuperviseError::Refused(format!("timer_create: {error}: fewer timers may help"))
        })?;
        let every = followers.iter().filter_map(|follower| follower.every()).min();
        Ok(Supervisor { world, followers, gated: None, ending: Vec::new(), exit: None, every, tick_at: 0 })
    }

    /// Takes the child at its gate, and opens it.
    pub(crate) fn take(&mut self, mut gated: GatedCommand) -> Result<(), SuperviseError> {
        let pid = gated.pid;
        ptrace::seize(pid).map_err(|error| refused(pid, error))?;
        let mut process = TracedProcess::new(pid);
        process.hidden = true;
        self.world.processes.insert(pid, process);
        self.add_thread(pid, pid);
        gated.open()?;
        self.gated = Some(gated);
        self.tick_at = self.every.map_or(0, |every| now_ns() + every.as_nanos() as u64);
        Ok(())
    }

    fn watch(&mut self) -> Result<(), SuperviseError> {
        while self.exit.is_none() || !self.world.written.is_empty() {
            self.on_time();
            if let Some(stop) = self.world.deferred.pop_front() {
                self.on_stop(stop);
                continue;
            }
            self.world.timer.set(self.due());
            match ptrace::wait() {
                Ok(Some(stop)) => self.on_stop(stop),
                Ok(None) => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
                Err(source) => {
                    let pid = self.world.root;
                    return Err(weir_sys::Error::Process { call: "waitpid", pid, source }.into());
                }
            }
        }
        Ok(())
    }

    /// What is to be done at times, not at stops.
    fn on_time(&mut self) {
        let now = now_ns();
        if !self.ending.is_empty() {
            self.go_on_ending();
        }
        self.adopt_those_waiting();
        if self.exit.is_some() {
            // Descendants are let go once nothing was written ahead of them.
            self.world.written.owners().into_iter().for_each(|pid| settle(&mut self.world, pid));
        }
        if let Some(every) = self.every.filter(|_| now >= self.tick_at) {
            self.each(|follower, world| follower.tick(world, now));
            // What is late is not made up for.
            self.tick_at = now_ns().max(now + every.as_nanos() as u64);
        }
    }

    /// When something is to be done next; 0: never.
    fn due(&self) -> u64 {
        let soon = (!self.ending.is_empty() || !self.world.early.is_empty()).then(|| now_ns() + SOON_NS);
        let last = self.exit.map(|_| now_ns() + LAST_NS);
        let tick = self.every.map(|_| self.tick_at);
        soon.into_iter().chain(last).chain(tick).min().unwrap_or(0)
    }

    /// Tells every follower.
    pub fn each(&mut self, mut tell: impl FnMut(&mut dyn LifecycleHandler, &mut Tracees)) {
        for follower in &mut self.followers {
            tell(follower.as_mut(), &mut self.world);
        }
    }

    fn outcome(self) -> RunOutcome {
        RunOutcome {
            exit: self.exit.unwrap_or(Exit::Code(0)),
            rescued: self.world.rescued,
            emitted_bytes: self.world.written.bytes,
            unable: self.world.unable.into_iter().collect(),
        }
    }
}

fn refused(pid: u32, error: std::io::Error) -> SuperviseError {
    match proc::status(pid) {
        Some(status) if status.tracerpid > 0 => {
            let tracer = proc::label(status.tracerpid as u32);
            SuperviseError::Refused(format!(
                "{tracer} traces it already, and one tracer is all that a process can have"
            ))
        }
        _ => weir_sys::Error::Process { call: "ptrace(PTRACE_SEIZE)", pid, source: error }.into(),
    }
}
