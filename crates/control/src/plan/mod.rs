//! From a [`RunRequest`] and a program to a [`Plan`]: arguments, environment, library, supervision, terminals.

mod children;
mod effects;
pub mod environment;
pub mod executable;
mod fixes;
mod guarantees;
pub mod host_capabilities;
mod modes;
pub mod program;
pub mod request;
mod shell_commands;
#[cfg(test)]
mod tests;
mod wrappers;

use std::ffi::OsString;
use std::time::Duration;

use weir_model::run::{Effect, PlanRow, ProgramProperties, RunPlan, Technique};
use weir_model::text_of;
use weir_walkers::{RuntimeEntry, UnreachedBuffers};

use crate::preload::PreloadConfig;

use children::MAX_DEPTH;
pub use environment::{EnvironmentChanges, InjectedFiles};
pub use host_capabilities::HostCapabilities;
use program::ResolvedProgram;
use request::{CoalesceScope, RunRequest};

/// The delay that substitutes for line buffering or no buffer: a reader does not notice 10 ms.
const SUBSTITUTE_DELAY: Duration = Duration::from_millis(10);
/// The delay of `weir run` without options, and of gathered calls without `--max-delay`.
pub const RECOMMENDED_DELAY: Duration = Duration::from_millis(100);

/// The supervisor's part of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SupervisionPlan {
    /// The longest time that a byte stays pending; None: no bound.
    pub delay: Option<Duration>,
    /// Write the pending bytes of a killed process.
    pub rescue: bool,
    /// Drain the streams before a fork.
    pub fix_fork: bool,
}

/// The changes for one command.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command, with the options that the plan adds.
    pub command: Vec<OsString>,
    #[allow(missing_docs)]
    pub runtime: &'static RuntimeEntry,
    #[allow(missing_docs)]
    pub program: ResolvedProgram,
    /// The library's configuration; None: the library is not loaded.
    pub library: Option<PreloadConfig>,
    /// The calls to gather, which needs an arena; None: no calls.
    pub coalesce: Option<CoalesceScope>,
    /// The longest time that a byte stays in the arena.
    pub gathered_delay: Duration,
    /// None: the command is not supervised.
    pub supervision: Option<SupervisionPlan>,
    /// Terminals replace standard output and standard error.
    pub terminal: bool,
    /// Variables of runtimes. An empty value removes the variable.
    pub variables: Vec<(&'static str, &'static str)>,
    /// The value of WEIR_HOOK, which tells hooks what to do; None: no hook is loaded.
    pub hooks: Option<String>,
    /// The command starts programs that its script or its arguments name.
    pub starts_programs: bool,
    /// Techniques that do not reach some of these programs, because of the program that starts them.
    pub lost_techniques: Vec<Technique>,
    /// One row for each option.
    pub rows: Vec<PlanRow>,
}

/// The buffers that the supervisor does not reach without /proc.
const NO_PROC: &str =
    "all buffers of programs (/proc is not mounted, and weir finds them by it: mount -t proc proc /proc)";
/// The files that weir does not reach where pidfd_getfd(2) is forbidden.
const OWN_FILES: &str = "files and sockets that a program opens itself (pidfd_getfd(2) is forbidden here, as in Docker without \
                         --cap-add SYS_PTRACE)";

/// Makes the plan for a command.
pub fn plan(command: &[OsString], request: &RunRequest, host: &HostCapabilities) -> Plan {
    plan_within(command, request, host, 0)
}

/// Makes the plan for a command. `depth` is the number of programs of the typed command that start it, such as env(1).
fn plan_within(command: &[OsString], request: &RunRequest, host: &HostCapabilities, depth: u32) -> Plan {
    let program = ResolvedProgram::of(command);
    let wrapped = wrappers::command(&program);
    if let Some(wrapped) = wrapped.filter(|wrapped| wrapped.is_unchanged() && depth < MAX_DEPTH) {
        let (wrapper, inner) = command.split_at(1 + wrapped.at);
        let mut plan = plan_within(inner, request, host, depth + 1);
        plan.command.splice(..0, wrapper.iter().cloned());
        return plan;
    }
    let runtime = executable::runtime(&program);
    let mut builder = PlanBuilder {
        unreached: executable::unreached(program.executable_path.as_deref(), runtime),
        plan: Plan {
            command: command.to_vec(),
            runtime,
            program,
            library: None,
            coalesce: None,
            gathered_delay: RECOMMENDED_DELAY,
            supervision: None,
            terminal: false,
            variables: Vec::new(),
            hooks: None,
            starts_programs: false,
            lost_techniques: Vec::new(),
            rows: Vec::new(),
        },
        request,
        host,
    };
    builder.add_modes();
    builder.add_guarantees();
    builder.add_children(depth);
    builder.finish()
}

/// Joins the names of buffers; None if there are none.
fn joined_names<'a>(buffers: impl Iterator<Item = &'a &'static UnreachedBuffers>) -> Option<String> {
    let names: Vec<&str> = buffers.map(|one| one.name).collect();
    // A name can end with a clause, which a comma closes.
    (!names.is_empty()).then(|| names.join(" or ").trim_end_matches(',').to_string())
}

impl Plan {
    /// Fails as execvp(3) if PATH has no such command, or if its file cannot be executed.
    pub fn check_command(&self) -> Result<(), weir_sys::Error> {
        let name = self.command.first().cloned().unwrap_or_default();
        match weir_sys::command::exec_error(&name) {
            None => Ok(()),
            Some(source) => {
                Err(weir_sys::Error::Command { command: name.to_string_lossy().into_owned(), source })
            }
        }
    }

    /// Returns the plan's part of the JSON document.
    pub fn document(&self) -> RunPlan {
        let program = &self.program;
        let executable = program.executable.as_ref();
        RunPlan {
            command: self.command.iter().map(text_of).collect(),
            program: ProgramProperties {
                path: program.path.as_deref().map(text_of),
                runtime: self.runtime.facts.name.into(),
                script: program.script,
                linked_statically: executable.is_some_and(|executable| executable.is_static),
                musl: executable.is_some_and(|executable| executable.musl),
                foreign: program.is_foreign(),
                privileged: program.privileged,
            },
            rows: self.rows.clone(),
        }
    }
}

/// A plan under construction.
struct PlanBuilder<'a> {
    plan: Plan,
    /// The buffers of the program that some options do not reach.
    unreached: Vec<&'static UnreachedBuffers>,
    request: &'a RunRequest,
    host: &'a HostCapabilities,
}

impl PlanBuilder<'_> {
    /// Adds a row. If it names no unreached buffers itself, it gets those of the runtime.
    fn row(&mut self, row: PlanRow) {
        let of_runtime = || {
            let is_missed = |one: &&&UnreachedBuffers| {
                one.concerns(&row.option) && !(one.is_drained && self.is_drained_soon(&row.option))
            };
            let names = joined_names(self.unreached.iter().filter(is_missed));
            names.filter(|_| row.effect != Effect::Not)
        };
        let unreached = row.unreached.clone().or_else(of_runtime);
        let unsupervised = self.out_of_supervision(&row);
        let unreached: Vec<String> = unreached.into_iter().chain(unsupervised).collect();
        let unreached = (!unreached.is_empty()).then(|| unreached.join("; "));
        self.plan.rows.push(row.without(unreached));
    }

    /// Names the buffers that the supervisor cannot reach: all without /proc, those of some files where pidfd_getfd(2) is forbidden.
    fn out_of_supervision(&self, row: &PlanRow) -> Option<String> {
        let is_outside =
            ["--max-delay", "--rescue", "--fix-fork"].iter().any(|one| row.option.starts_with(one));
        let concerns = is_outside && row.technique != Technique::Nothing && row.effect != Effect::Not;
        let named = match (self.host.no_proc, self.host.no_foreign_files) {
            (true, _) => NO_PROC,
            (false, true) => OWN_FILES,
            (false, false) => return None,
        };
        concerns.then(|| named.to_string())
    }

    /// Returns the library's configuration, and adds the library to the plan.
    fn library(&mut self) -> &mut PreloadConfig {
        self.plan.library.get_or_insert_default()
    }

    /// Removes the library for a foreign program, whose 32-bit loader would print a warning about it.
    fn finish(mut self) -> Plan {
        if self.plan.program.is_foreign() {
            self.plan.library = None;
        }
        self.plan
    }

    /// Returns the supervisor's part, and adds supervision to the plan.
    fn supervision(&mut self) -> &mut SupervisionPlan {
        self.plan.supervision.get_or_insert_default()
    }

    /// Bounds the delay from outside. The shortest bound wins.
    fn bound_delay(&mut self, delay: Duration) {
        let supervision = self.supervision();
        supervision.delay = Some(supervision.delay.map_or(delay, |other| other.min(delay)));
    }

    /// Returns the buffers that the library does not reach with this option and the supervisor drains.
    fn drained_buffers(&self, option: &str) -> Option<String> {
        joined_names(self.unreached.iter().filter(|one| one.is_drained && one.concerns(option)))
    }

    /// Returns whether the program has buffers of its own that the supervisor drains.
    fn has_drained_buffers(&self) -> bool {
        self.unreached.iter().any(|one| one.is_drained)
    }

    /// Returns whether the supervisor drains buffers so soon that this option seems to hold for them.
    fn is_drained_soon(&self, option: &str) -> bool {
        let delay = self.plan.supervision.as_ref().and_then(|supervision| supervision.delay);
        let is_short = ["none", "line"].iter().any(|mode| option.ends_with(mode));
        is_short && delay.is_some_and(|delay| delay <= SUBSTITUTE_DELAY)
    }

    /// Adds the last substitute, a terminal: the C library writes to it line by line.
    fn terminal_substitute(&mut self, option: &str, why: &str) {
        if self.host.tracer.is_some() {
            self.row(PlanRow::refused(option, why));
        } else if self.host.stdout_is_terminal {
            let text = format!("{why}; standard output is a terminal, where lines go out at once");
            self.row(PlanRow::honoured(option, Technique::Nothing, text).with_effect(Effect::Already));
        } else {
            self.plan.terminal = true;
            let text = format!("{why}: a terminal as standard output makes it write line by line");
            self.row(PlanRow::honoured(option, Technique::Terminal, text).with_effect(Effect::StandIn));
        }
    }

    /// Returns the reason why the program cannot be supervised; None if it can.
    fn not_traceable(&self) -> Option<String> {
        if self.plan.program.privileged {
            return Some("it runs with another user's rights, which a tracer would take from it".into());
        }
        if self.plan.program.is_foreign() {
            return Some("it is a program for another architecture or of 32 bits".into());
        }
        self.traced_already().or_else(|| self.host.not_traceable.clone())
    }

    fn traced_already(&self) -> Option<String> {
        let tracer = self.host.tracer.as_ref()?;
        Some(format!("{tracer} traces it already, and a process can have only one tracer"))
    }

    /// Returns the reason why the library cannot be loaded; None if it can.
    fn not_preloadable(&self) -> Option<&'static str> {
        let program = &self.plan.program;
        if program.takes_library() {
            None
        } else if program.privileged {
            Some("it runs with another user's rights: no library is loaded into it")
        } else if program.is_foreign() {
            Some("it is a program for another architecture or of 32 bits")
        } else {
            Some("it is linked statically: no library can be loaded into it")
        }
    }
}
