//! Checks the `weir run` commands of findings with the planner of `weir run` itself.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_control::plan::program::ResolvedProgram;
use weir_control::plan::{self, HostCapabilities, Plan};
use weir_diagnose::{PlannedRun, RunOption, RunPlanner, RunProposal};
use weir_model::run::{Effect, Technique};
use weir_model::trace::Image;

use crate::run::parse_request;

/// The planner on this machine, now.
pub struct HostPlanner {
    host: HostCapabilities,
    directory: Option<PathBuf>,
}

impl HostPlanner {
    /// Reads what this machine can do.
    pub fn read() -> Self {
        Self { host: HostCapabilities::read(), directory: std::env::current_dir().ok() }
    }

    /// Returns the plan of a command; None if PATH has no such program. A relative path is one of `directory`.
    fn plan_of(&self, words: &[String], directory: Option<&Path>, option: &RunOption) -> Option<Plan> {
        let mut command: Vec<OsString> = words.iter().map(Into::into).collect();
        let name = words.first()?;
        if let Some(directory) = directory.filter(|_| name.contains('/')) {
            command[0] = directory.join(name).into();
        }
        let plan = plan::plan(&command, &parse_request(&option.words())?, &self.host);
        plan.program.path.is_some().then_some(plan)
    }

    /// Returns the program's own command. If its first word would start another file, the executable's path replaces it.
    fn own_command(&self, image: &Image) -> Option<PlannedRun> {
        if image.argv.is_empty() || image.argv_cut {
            return None;
        }
        let mut command: Vec<String> = image.argv.iter().map(|word| word.exact().into()).collect();
        let directory = directory_of(image);
        let found = resolved(&command[0], directory).is_some_and(|found| starts(&found, image.exe.exact()));
        if !found {
            command[0] = image.exe.exact().into();
        }
        let other = directory.filter(|directory| self.directory.as_deref() != Some(directory));
        Some(PlannedRun { command, directory: other.map(|path| path.to_string_lossy().into_owned()) })
    }

    /// Returns whether the option has its effect on a program that a command starts.
    fn reaches(&self, of_command: &Plan, image: &Image, option: &RunOption) -> bool {
        let Some(own) = self.own_command(image) else { return false };
        let directory = directory_of(image);
        let Some(of_program) = self.plan_of(&own.command, directory, option) else { return false };
        let is_command =
            of_command.program.path.as_deref().is_some_and(|path| starts(path, image.exe.exact()));
        let holds = is_command || of_program.holds_for_children();
        of_command.refusals().is_empty() && holds && helps(&of_program, option)
    }
}

impl RunPlanner for HostPlanner {
    fn plan(&self, proposal: &RunProposal) -> Option<PlannedRun> {
        let option = &proposal.option;
        let planned = match (proposal.command, proposal.programs) {
            ([], [image]) => self.own_command(image)?,
            ([], _) => return None,
            (command, _) => PlannedRun { command: command.to_vec(), directory: None },
        };
        let directory = planned.directory.as_deref().map(Path::new);
        let of_command = self.plan_of(&planned.command, directory, option)?;
        let mut programs = proposal.programs.iter();
        programs.all(|image| self.reaches(&of_command, image, option)).then_some(planned)
    }
}

fn directory_of(image: &Image) -> Option<&Path> {
    image.directory.as_ref().map(|directory| Path::new(directory.exact()))
}

/// Returns whether the option changes something of the program that the finding is about.
fn helps(plan: &Plan, option: &RunOption) -> bool {
    if option.needs_library() && !plan.program.takes_library() {
        return false;
    }
    plan.rows.iter().all(|row| match row.effect {
        Effect::Whole => true,
        Effect::Part if row.technique == Technique::Nothing => false,
        Effect::StandIn | Effect::Part => option.may_be_partial(),
        Effect::Already | Effect::Not => false,
    })
}

/// Returns the file that a command's first word starts.
fn resolved(word: &str, directory: Option<&Path>) -> Option<PathBuf> {
    let word = match directory {
        Some(directory) if word.contains('/') => directory.join(word).into(),
        _ => OsString::from(word),
    };
    ResolvedProgram::of(&[word]).path
}

/// Returns whether a file is an executable, or a script that it interprets.
fn starts(file: &Path, executable: &str) -> bool {
    let inode = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino())).ok();
    let wanted = inode(Path::new(executable));
    wanted.is_some()
        && (inode(file) == wanted
            || ends_in(file, executable)
            || ends_in(Path::new(executable), &file.to_string_lossy()))
}

/// Returns whether a script is interpreted by an executable in the end.
fn ends_in(script: &Path, executable: &str) -> bool {
    let program = ResolvedProgram::of(&[script.into()]);
    let real = fs::canonicalize(executable).unwrap_or_else(|_| executable.into());
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    program.script && program.names.last().is_some_and(|last| *last == name)
}
