//! `weir run` commands in fixes: what a rule proposes, and the planner that accepts or drops it.

use weir_model::trace::Image;
use weir_model::{StreamKind, Untrusted, obeyed_by_terminals, shell_quoted};

use crate::context::RuleContext;
use crate::renames::file_name;

/// The options of `weir run` that fixes offer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunOption {
    Coalesce,
    MaxDelay,
    Rescue,
    /// `--rescue` for bytes that are pending at an execve(2): only the library writes them.
    RescueAtExec,
    FixFork,
    FixOrder,
    /// `--line`, for standard output.
    Line,
    /// `--file NAME=line`, for the streams that a program opens on files of this name.
    FileLines(String),
    PrivateStdin,
}

impl RunOption {
    /// Returns the option as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let words: &[&str] = match self {
            RunOption::Coalesce => &["--coalesce"],
            RunOption::MaxDelay => &["--max-delay", "100ms"],
            RunOption::Rescue | RunOption::RescueAtExec => &["--rescue"],
            RunOption::FixFork => &["--fix-fork"],
            RunOption::FixOrder => &["--fix-order"],
            RunOption::Line => &["--line"],
            RunOption::FileLines(name) => return vec!["--file".into(), format!("{name}=line")],
            RunOption::PrivateStdin => &["--private-stdin"],
        };
        words.iter().map(|word| word.to_string()).collect()
    }

    /// Returns whether the option helps although it does not reach every buffer of a program: the rules offer these
    /// options only for buffers that weir could read, and for calls that the library can gather.
    pub fn may_be_partial(&self) -> bool {
        matches!(self, RunOption::Coalesce | RunOption::MaxDelay | RunOption::Rescue | RunOption::FixFork)
    }

    /// Returns whether the option has its effect only in a program that loads weir's library.
    pub fn needs_library(&self) -> bool {
        *self == RunOption::RescueAtExec
    }
}

/// A `weir run` command that a finding would offer.
#[derive(Debug)]
pub struct RunProposal<'a> {
    #[allow(missing_docs)]
    pub option: RunOption,
    /// The command of the recording, which starts the programs. Empty if weir attached to a process: then the command
    /// is that of the program itself.
    pub command: &'a [String],
    /// The programs that the option must reach, at least one.
    pub programs: &'a [&'a Image],
}

/// A command that `weir run` accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// The words after `weir run OPTIONS --`.
    pub command: Vec<String>,
    /// The directory in which the command must be started, if it is not the current one.
    pub directory: Option<String>,
}

/// Decides what `weir run` can do for a program. The implementation asks the same planner as `weir run` itself.
pub trait RunPlanner: Sync {
    /// Returns the command with which the option has its effect on the programs, or None if it has none.
    fn plan(&self, proposal: &RunProposal) -> Option<PlannedRun>;
}

impl RuleContext<'_> {
    /// Returns the `weir run` command that applies an option to the program that a process ran at a time, or None if the
    /// option would not help it.
    pub fn weir_run(&self, option: RunOption, pid: u32, at_s: f64) -> Option<String> {
        self.weir_run_all(option, &[(pid, at_s)])
    }

    /// Returns the option that makes the streams on these descriptors write whole lines to an open file. Returns None if it
    /// has no name that a pattern of `weir run` can match.
    pub fn line_option(&self, fds: &[i32], file: u32) -> Option<RunOption> {
        if fds.iter().all(|&fd| fd == 1) {
            return Some(RunOption::Line);
        }
        let file = self.file(file).filter(|file| file.kind == StreamKind::File)?;
        let name = file_name(file.path.exact());
        let is_plain = !name.is_empty()
            && !name.contains(['*', '?', '[', ']', '\\', '='])
            && !name.contains(obeyed_by_terminals);
        (is_plain && !fds.contains(&1)).then(|| RunOption::FileLines(format!("*{name}")))
    }

    /// As [`Self::weir_run`], for several programs at once.
    pub fn weir_run_all(&self, option: RunOption, programs: &[(u32, f64)]) -> Option<String> {
        let images: Option<Vec<&Image>> =
            programs.iter().map(|&(pid, at_s)| self.image_at(pid, at_s).map(|(_, image)| image)).collect();
        let (images, command) = (images?, self.recording.command.as_slice());
        let (options, programs) = (join(option.words().iter().map(String::as_str)), images.as_slice());
        let planned = self.planner.plan(&RunProposal { option, command, programs })?;
        let command = join(planned.command.iter().map(String::as_str));
        let directory = planned.directory.map(|directory| format!("cd {} && ", shell_quoted(&directory)));
        Some(format!("{}weir run {options} -- {command}", directory.unwrap_or_default()))
    }

    /// Returns the command of a process's last program.
    pub fn command(&self, pid: u32) -> String {
        let image = self.process(pid).and_then(|process| process.images.last());
        let argv = image.map(|image| image.argv.as_slice()).filter(|argv| !argv.is_empty());
        match argv {
            Some(argv) => join(argv.iter().map(Untrusted::exact)),
            None if pid == self.recording.root && !self.recording.command.is_empty() => {
                join(self.recording.command.iter().map(String::as_str))
            }
            None => image.map_or("COMMAND".into(), |image| shell_quoted(image.comm.exact())),
        }
    }
}

fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shell_quoted).collect::<Vec<_>>().join(" ")
}
