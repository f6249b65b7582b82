//! Carries a plan out: puts files in place, sets the environment, starts the command and stays as far as needed.

pub(crate) mod signals;
mod wait;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use weir_sys::inherited::{self, InheritedFds};
use weir_sys::launch;

use crate::coalesce::Arena;
use crate::coalesce::handler::CoalesceHandler;
use crate::plan::{EnvironmentChanges, InjectedFiles, Plan};
use crate::preload::{self, install};
use crate::pty::Terminals;
use crate::supervise;
use crate::supervise::LifecycleHandler;

pub use crate::supervise::RunOutcome;

/// Why a command did not run, or could not be seen to its end.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] weir_sys::Error),
    /// It could not be followed.
    #[error(transparent)]
    Follow(#[from] supervise::SuperviseError),
    /// What is loaded into it could be put nowhere.
    #[error(transparent)]
    InjectedFiles(#[from] install::InstallError),
    /// There is no memory in which calls are gathered.
    #[error("memfd_create: {0}; leave out --coalesce")]
    Arena(std::io::Error),
    /// There is no terminal for it.
    #[error("a terminal for the command: {0}; leave out --pty")]
    Terminal(std::io::Error),
}

/// What the caller writes when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputAfterExit {
    /// Nothing.
    Nothing,
    /// Something, but not to standard output.
    File,
    /// Something to standard output, which is kept open for it.
    Stdout,
}

/// Runs the command. Where nothing is left to do behind its start, not for the caller either, weir's own process
/// becomes the command, and this returns only when that failed. `before` is told what following it will not do, before
/// it starts. Otherwise weir lets go of standard input and output ([`inherited::close_inherited`]).
pub fn carry_out(
    plan: &Plan,
    behind: OutputAfterExit,
    before: impl FnOnce(&[String]),
) -> Result<RunOutcome, LaunchError> {
    let arena = arena(plan)?;
    let alone = plan.outside.is_none()
        && plan.coalesce.is_none()
        && !plan.terminal
        && behind == OutputAfterExit::Nothing;
    // Whose child, or itself, is the command.
    let first = if alone { std::os::unix::process::parent_id() } else { std::process::id() };
    let path = arena.as_ref().map(Arena::path);
    set(plan.settings(&place(plan, first, path)?, |name| std::env::var_os(name)));
    if alone {
        before(&[]);
        return Err(launch::replace(&plan.command).into());
    }
    let others: Handlers = match arena {
        Some(arena) => vec![Box::new(CoalesceHandler::new(arena, plan.gathered_delay))],
        None => Vec::new(),
    };
    match plan.terminal {
        true => in_terminals(plan, others, behind, before),
        false => started(plan, launch::start(&plan.command)?, others, behind, before),
    }
}

type Handlers = Vec<Box<dyn LifecycleHandler + Send>>;

/// Where tiny calls are gathered.
fn arena(plan: &Plan) -> Result<Option<Arena>, LaunchError> {
    let create = |_| Arena::create(plan.gathered_delay).map_err(LaunchError::Arena);
    plan.coalesce.map(create).transpose()
}

/// Files of the library and of the hooks.
fn place(plan: &Plan, first: u32, arena: Option<PathBuf>) -> Result<InjectedFiles, LaunchError> {
    let hooks = plan.hooks_used();
    let paths: Vec<String> = hooks.iter().map(|hook| format!("{}/{}", hook.folder, hook.file)).collect();
    let files: Vec<(&str, &[u8])> =
        paths.iter().zip(&hooks).map(|(path, hook)| (path.as_str(), hook.bytes)).collect();
    let hooks = if files.is_empty() { None } else { Some(install::place("hooks", &files)?) };
    let library = match &plan.library {
        None => None,
        Some(wishes) => {
            let coalesce = plan.coalesce.zip(arena);
            let first = wishes.private_stdin.map(|_| first);
            Some((library()?, preload::PreloadConfig { first, coalesce, ..wishes.clone() }))
        }
    };
    Ok(InjectedFiles { library, hooks })
}

/// The library's file.
fn library() -> Result<PathBuf, install::InstallError> {
    const NAME: &str = "libweir-run.so";
    Ok(install::place("run", &[(NAME, preload::LIBRARY)])?.join(NAME))
}

/// Weir's own environment is the one that the command gets.
fn set(settings: EnvironmentChanges) {
    for (name, value) in settings {
        // SAFETY: no other thread runs yet: terminals and followers are started behind this.
        unsafe {
            match value {
                Some(value) => std::env::set_var::<&str, &OsString>(&name, &value),
                None => std::env::remove_var::<&OsStr>(name.as_ref()),
            }
        }
    }
}

/// Stays until the command has ended.
fn started(
    plan: &Plan,
    gated: launch::GatedCommand,
    others: Handlers,
    behind: OutputAfterExit,
    before: impl FnOnce(&[String]),
) -> Result<RunOutcome, LaunchError> {
    inherited::close_inherited(if behind == OutputAfterExit::Stdout {
        InheritedFds::Stdout
    } else {
        InheritedFds::Nothing
    });
    let Some(outside) = plan.outside else {
        before(&[]);
        return Ok(wait::until_ended(gated)?);
    };
    let wishes = supervise::SuperviseOptions {
        rescue: outside.rescue,
        max_delay: outside.delay,
        fix_fork: outside.fix_fork,
        save_in: None,
    };
    before(&supervise::unable(&gated, &wishes));
    Ok(supervise::follow(gated, &wishes, others)?)
}

/// The same with terminals; all that was written is out when it returns.
fn in_terminals(
    plan: &Plan,
    others: Handlers,
    behind: OutputAfterExit,
    before: impl FnOnce(&[String]),
) -> Result<RunOutcome, LaunchError> {
    let terminals = Terminals::open().map_err(LaunchError::Terminal)?;
    let (gated, relay) = terminals.during(|| launch::start(&plan.command)).map_err(LaunchError::Terminal)?;
    let gated = gated?;
    relay.of(gated.pid);
    let outcome = started(plan, gated, others, behind, before);
    relay.finish();
    outcome
}
