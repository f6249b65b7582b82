//! From wishes and a program to what will be done: arguments, environment, the library, the follower, a terminal.

mod environment;
pub mod executable;
mod fixes;
mod guarantees;
pub mod host_capabilities;
mod modes;
pub mod program;
pub mod request;
pub mod rows;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::time::Duration;

use crate::plan::program::ResolvedProgram;
use crate::plan::request::{CoalesceScope, RunRequest};
use crate::plan::rows::{Effect, PlanRow, Technique};
use crate::preload;
use crate::runtimes::{self, RuntimeFacts};

pub use environment::{EnvironmentChanges, InjectedFiles};

/// Where lines cannot be had, what waits is brought out from outside as often as this.
const STAND_IN_DELAY: Duration = Duration::from_millis(10);
/// What is done when nothing is asked for.
pub const RECOMMENDED_DELAY: Duration = Duration::from_millis(100);

/// What a plan depends on besides the program.
#[derive(Debug, Clone, Default)]
pub struct HostCapabilities {
    /// Why no process may be traced here; None: it may.
    pub untraceable: Option<String>,
    /// Why a program's system calls cannot be intercepted here; None: they can.
    pub no_dispatch: Option<&'static str>,
    /// Standard output is a terminal.
    pub terminal: bool,
    /// Standard input is a regular file or a device that has all its bytes at once.
    pub input_is_whole: bool,
    /// Device and inode of standard input.
    pub input: Option<(u64, u64)>,
}

/// What the follower has to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SupervisionPlan {
    /// No byte waits longer.
    pub delay: Option<Duration>,
    /// Bring out what waits at a kill.
    pub rescue: bool,
    /// Bring out what waits before a fork.
    pub fix_fork: bool,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command, with options that were added.
    pub command: Vec<OsString>,
    /// The runtime that was recognised.
    pub runtime: &'static RuntimeFacts,
    /// The program that was found.
    pub program: ResolvedProgram,
    /// What the library does; None: it is not loaded.
    pub library: Option<preload::PreloadConfig>,
    /// Which calls are gathered, for which an arena is needed.
    pub coalesce: Option<CoalesceScope>,
    /// How long bytes may wait where calls are gathered.
    pub gathered_delay: Duration,
    /// For the follower; None: nothing follows.
    pub outside: Option<SupervisionPlan>,
    /// Terminals for standard output and error.
    pub terminal: bool,
    /// Variables of runtimes that are set; an empty value takes one away.
    pub variables: Vec<(&'static str, &'static str)>,
    /// What runtimes' hooks are to do; None: they are not loaded.
    pub hooks: Option<String>,
    /// Every wish and what becomes of it.
    pub rows: Vec<PlanRow>,
}

/// Makes the plan.
pub fn plan(command: &[OsString], request: &RunRequest, around: &HostCapabilities) -> Plan {
    let program = ResolvedProgram::of(command);
    let mut maker = PlanBuilder {
        plan: Plan {
            command: command.to_vec(),
            runtime: runtimes::of(&program),
            program,
            library: None,
            coalesce: None,
            gathered_delay: RECOMMENDED_DELAY,
            outside: None,
            terminal: false,
            variables: Vec::new(),
            hooks: None,
            rows: Vec::new(),
        },
        request,
        around,
    };
    maker.modes();
    maker.promises();
    maker.finish()
}

impl Plan {
    /// The wishes that nothing can fulfil, a sentence each.
    pub fn refusals(&self) -> Vec<String> {
        self.said(|effect| effect == Effect::Not)
    }

    /// The wishes that something else stands in for, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        self.said(|effect| effect == Effect::StandIn)
    }

    /// Leaves everything as it is.
    pub fn nothing(&mut self) {
        (self.library, self.outside, self.hooks) = (None, None, None);
        self.variables.clear();
        self.rows.clear();
    }

    fn said(&self, of: impl Fn(Effect) -> bool) -> Vec<String> {
        self.rows
            .iter()
            .filter(|row| of(row.effect))
            .map(|row| format!("{}: {}", row.wish, row.text))
            .collect()
    }
}

/// A plan that is being made.
struct PlanBuilder<'a> {
    plan: Plan,
    request: &'a RunRequest,
    around: &'a HostCapabilities,
}

impl PlanBuilder<'_> {
    fn row(&mut self, row: PlanRow) {
        self.plan.rows.push(row);
    }

    /// The library's wishes, which begin with the first of them.
    fn library(&mut self) -> &mut preload::PreloadConfig {
        self.plan.library.get_or_insert_default()
    }

    /// A loader of 32 bits would complain of a library of 64.
    fn finish(mut self) -> Plan {
        if self.plan.program.elf.as_ref().is_some_and(|elf| !elf.native) {
            self.plan.library = None;
        }
        self.plan
    }

    /// The follower's wishes, which begin with the first of them.
    fn outside(&mut self) -> &mut SupervisionPlan {
        self.plan.outside.get_or_insert_default()
    }

    /// A bound of the delay from outside: the shortest that is asked for holds.
    fn delay(&mut self, delay: Duration) {
        let outside = self.outside();
        outside.delay = Some(outside.delay.map_or(delay, |other| other.min(delay)));
    }

    /// A terminal is the last thing that can stand in: the C library writes lines to it.
    fn terminal(&mut self, wish: &str, why: &str) {
        if self.around.terminal {
            let text = format!("{why}; standard output is a terminal, where lines go out at once");
            self.row(PlanRow::whole(wish, Technique::Nothing, text).but(Effect::Already));
        } else {
            self.plan.terminal = true;
            let text = format!("{why}: a terminal as its standard output makes it write by lines");
            self.row(PlanRow::whole(wish, Technique::Terminal, text).but(Effect::StandIn));
        }
    }

    /// Why nothing can follow the program; None: it can be followed.
    fn unfollowed(&self) -> Option<String> {
        let privileged = "it runs with another user's rights, which a tracer would take from it";
        let foreign = "it is a program for another architecture or of 32 bits";
        if self.plan.program.privileged {
            return Some(privileged.into());
        }
        if self.plan.program.elf.as_ref().is_some_and(|elf| !elf.native) {
            return Some(foreign.into());
        }
        self.around.untraceable.clone()
    }

    /// Why the library cannot be loaded; None: it can.
    fn unloaded(&self) -> Option<&'static str> {
        let program = &self.plan.program;
        match &program.elf {
            _ if program.takes_library() => None,
            _ if program.privileged => {
                Some("it runs with another user's rights: no library is loaded into it")
            }
            Some(elf) if !elf.native => Some("it is a program for another architecture or of 32 bits"),
            _ => Some("it is linked statically: no library can be loaded into it"),
        }
    }
}
