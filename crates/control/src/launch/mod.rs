//! Runs the command of a plan: installs files, sets the environment, starts the command and waits for it.

pub(crate) mod signals;
mod wait;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use weir_model::run::RunOutcome;
use weir_sys::companion::Companion;
use weir_sys::group_witness::GroupWitness;
use weir_sys::inherited::{self, InheritedFds};
use weir_sys::{errno_text, launch, limits};

use crate::coalesce::Arena;
use crate::coalesce::handler::CoalesceHandler;
use crate::coalesce::ticker::ArenaTicker;
use crate::plan::{EnvironmentChanges, InjectedFiles, Plan};
use crate::preload::{self, PreloadConfig, install};
use crate::pty::Terminals;
use crate::supervise::{self, LifecycleHandler, SuperviseOptions};

/// The reason why a command did not run, or why weir lost it.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// fork(2) or execve(2) failed.
    #[error(transparent)]
    Start(#[from] weir_sys::Error),
    #[error(transparent)]
    #[allow(missing_docs)]
    Supervise(#[from] supervise::SuperviseError),
    /// No directory takes the library or the hooks.
    #[error(transparent)]
    Install(#[from] install::InstallError),
    /// The library cannot take the configuration.
    #[error(transparent)]
    Config(#[from] preload::ConfigError),
    /// No memory for the arena of gathered calls.
    #[error("memory for the calls that --coalesce gathers: {}; {}", errno_text(.0), arena_advice(.0))]
    Arena(std::io::Error),
    #[error("a terminal for the command: {}; leave out --pty{}", errno_text(.0), limits::advice(.0))]
    #[allow(missing_docs)]
    Terminal(std::io::Error),
    #[error("{}", limits::no_thread(.0))]
    #[allow(missing_docs)]
    Thread(std::io::Error),
}

fn arena_advice(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EFBIG) => "raise the limit of the file size (ulimit -f), which counts for it too",
        Some(libc::ENOMEM) => "raise the limit of virtual memory (ulimit -v), or leave out --coalesce",
        _ => "leave out --coalesce",
    }
}

/// The output that the caller writes after the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputAfterExit {
    #[allow(missing_docs)]
    None,
    /// Output to a file. Weir releases its standard output for the time of the command.
    File,
    /// Output to standard output, which stays open.
    Stdout,
}

/// The end of a command.
#[derive(Debug)]
pub struct EndedCommand {
    #[allow(missing_docs)]
    pub outcome: RunOutcome,
    /// Sentences about output of the command that weir has lost, also in the limitations of the outcome.
    pub lost_output: Vec<String>,
}

impl From<RunOutcome> for EndedCommand {
    fn from(outcome: RunOutcome) -> EndedCommand {
        EndedCommand { outcome, lost_output: Vec::new() }
    }
}

/// Runs the command and returns its outcome.
///
/// If neither the plan nor the caller needs weir after the start, weir's own process becomes the command by execve(2),
/// and the function returns only the error of a failed execve. Otherwise weir releases its standard input and output
/// for the time of the command. `before_start` gets a sentence for each limitation of the supervision.
pub fn launch(
    plan: &Plan,
    output_after: OutputAfterExit,
    before_start: impl FnOnce(&[String]),
) -> Result<EndedCommand, LaunchError> {
    let arena = create_arena(plan)?;
    let becomes_command = plan.supervision.is_none()
        && plan.coalesce.is_none()
        && !plan.terminal
        && output_after == OutputAfterExit::None;
    // The command's parent: weir, or weir's parent if weir becomes the command.
    let first_pid = if becomes_command { std::os::unix::process::parent_id() } else { std::process::id() };
    let arena_path = arena.as_ref().map(Arena::path);
    let files = install_files(plan, first_pid, arena_path)?;
    apply(plan.environment_changes(&files, |name| std::env::var_os(name)));
    if becomes_command {
        before_start(&[]);
        return Err(launch::exec(&plan.command).into());
    }
    if plan.terminal {
        run_in_terminals(plan, arena, output_after, before_start)
    } else {
        Ok(run(plan, launch::start(&plan.command)?, None, arena, output_after, before_start)?.into())
    }
}

fn create_arena(plan: &Plan) -> Result<Option<Arena>, LaunchError> {
    let create = |_| Arena::create(plan.gathered_delay).map_err(LaunchError::Arena);
    plan.coalesce.map(create).transpose()
}

fn install_files(
    plan: &Plan,
    first_pid: u32,
    arena_path: Option<PathBuf>,
) -> Result<InjectedFiles, LaunchError> {
    let hooks = plan.hooks_used();
    let paths: Vec<String> = hooks.iter().map(|hook| format!("{}/{}", hook.folder, hook.file)).collect();
    let files: Vec<(&str, &[u8])> =
        paths.iter().zip(&hooks).map(|(path, hook)| (path.as_str(), hook.bytes)).collect();
    let hooks = if files.is_empty() { None } else { Some(install::install("hooks", &files)?) };
    let library = match &plan.library {
        None => None,
        Some(config) => {
            let coalesce = plan.coalesce.zip(arena_path);
            let first_pid = config.private_stdin.map(|_| first_pid);
            let (path, config) =
                (install_library()?, PreloadConfig { first_pid, coalesce, ..config.clone() });
            config.check(&path)?;
            Some((path, config))
        }
    };
    Ok(InjectedFiles { library, hooks })
}

fn install_library() -> Result<PathBuf, install::InstallError> {
    const NAME: &str = "libweir-run.so";
    Ok(install::install("run", &[(NAME, preload::LIBRARY)])?.join(NAME))
}

/// Changes weir's own environment, which the command inherits.
fn apply(changes: EnvironmentChanges) {
    for (name, value) in changes {
        // SAFETY: this is the only thread: the relay and the supervisor start later.
        unsafe {
            match value {
                Some(value) => std::env::set_var::<&str, &OsString>(&name, &value),
                None => std::env::remove_var::<&OsStr>(name.as_ref()),
            }
        }
    }
}

/// Releases the started command from its gate and waits until it has ended. `relay` copies its output.
fn run(
    plan: &Plan,
    gated: launch::GatedCommand,
    relay: Option<&Companion>,
    arena: Option<Arena>,
    output_after: OutputAfterExit,
    before_start: impl FnOnce(&[String]),
) -> Result<RunOutcome, LaunchError> {
    inherited::close_inherited(if output_after == OutputAfterExit::Stdout {
        InheritedFds::Stdout
    } else {
        InheritedFds::Nothing
    });
    let Some(supervision) = plan.supervision else {
        before_start(&[]);
        // Without a witness, the command gets a signal to the process group twice.
        let _witness = GroupWitness::start();
        let ticker = arena.map(|arena| ArenaTicker::start(arena, plan.gathered_delay)).transpose();
        return Ok(wait::until_ended(gated, ticker.map_err(LaunchError::Thread)?)?);
    };
    let handlers: Vec<Box<dyn LifecycleHandler + Send>> = match arena {
        Some(arena) => vec![Box::new(CoalesceHandler::new(arena, plan.gathered_delay))],
        None => Vec::new(),
    };
    let options = SuperviseOptions {
        rescue: supervision.rescue,
        max_delay: supervision.delay,
        fix_fork: supervision.fix_fork,
        save_in: None,
    };
    before_start(&supervise::limitations(&gated));
    Ok(supervise::supervise(gated, &options, handlers, relay)?)
}

/// As [`run`], with terminals as standard output and standard error. Returns when all their output is relayed.
fn run_in_terminals(
    plan: &Plan,
    arena: Option<Arena>,
    output_after: OutputAfterExit,
    before_start: impl FnOnce(&[String]),
) -> Result<EndedCommand, LaunchError> {
    let terminals = Terminals::open().map_err(LaunchError::Terminal)?;
    let start = || launch::start(&plan.command);
    let (gated, output) = terminals.replace_during(start).map_err(LaunchError::Terminal)?;
    let gated = gated?;
    let relay = output.relay(gated.pid).map_err(LaunchError::Terminal)?;
    let outcome = run(plan, gated, Some(&relay), arena, output_after, before_start);
    let lost_output: Vec<String> = relay.finish().lines().map(String::from).collect();
    let mut outcome = outcome?;
    outcome.limitations.extend(lost_output.iter().cloned());
    Ok(EndedCommand { outcome, lost_output })
}
