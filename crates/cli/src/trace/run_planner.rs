//! Checks the `weir run` commands of findings with the planner of `weir run` itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weir_control::plan::{self, HostCapabilities, Plan};
use weir_diagnose::{PlannedRun, RunOption, RunPlanner, RunProposal};
use weir_model::run::{Effect, PlanRow, Technique};
use weir_model::trace::Image;
use weir_model::{Untrusted, os_string_of, text_of};
use weir_sys::proc;
use weir_sys::start_directories::start_directories;

use crate::own_command::{StartedProgram, starts};
use crate::run::parse_request;

/// The planner on this machine, now.
pub struct HostPlanner {
    host: HostCapabilities,
    /// The paths of a process to which weir attaches name other files than those of weir.
    has_other_files: bool,
    /// Arguments of the processes to which weir attaches, and the directories in which they may have been started.
    attached: Vec<(Vec<Untrusted>, Vec<PathBuf>)>,
}

impl HostPlanner {
    /// Reads what this machine can do for commands, and for the programs of these processes.
    pub fn read(pids: &[u32]) -> Self {
        let has_other_files = pids.iter().any(|pid| proc::has_other_files(*pid));
        let attached = pids.iter().map(|&pid| (proc::names(pid).2, start_directories(pid))).collect();
        Self { host: HostCapabilities::read(), has_other_files, attached }
    }

    /// Returns the plan of a command; None if PATH has no such program. A relative path is one of `directory`.
    fn plan_of(&self, words: &[String], directory: Option<&Path>, option: &RunOption) -> Option<Plan> {
        let mut command: Vec<OsString> = words.iter().map(|word| os_string_of(word)).collect();
        let name = words.first()?;
        if let Some(directory) = directory.filter(|_| name.contains('/')) {
            command[0] = directory.join(name).into();
        }
        let plan = plan::plan(&command, &parse_request(&option.words())?, &self.host);
        plan.program.path.is_some().then_some(plan)
    }

    /// Returns the program's own command; None if its words are not known.
    fn own_command(&self, image: &Image) -> Option<PlannedRun> {
        if self.has_other_files || image.argv_cut {
            return None;
        }
        let argv = image.argv.iter().map(Untrusted::exact).collect();
        let directory = directory_of(image);
        let attached = self.attached.iter().find(|(argv, _)| *argv == image.argv);
        let others = attached.map_or(&[][..], |(_, directories)| directories);
        let program =
            StartedProgram { exe: image.exe.exact(), argv, directory: directory.as_deref(), others };
        let (command, directory) = program.command().ok()?;
        Some(PlannedRun { command, directory: directory.map(text_of) })
    }

    /// Returns whether the option has its effect on a program that a command starts.
    fn reaches(&self, of_command: &Plan, image: &Image, option: &RunOption) -> bool {
        let Some(own) = self.own_command(image) else { return false };
        let directory = directory_of(image);
        let Some(of_program) = self.plan_of(&own.command, directory.as_deref(), option) else { return false };
        let is_command =
            of_command.program.path.as_deref().is_some_and(|path| starts(path, image.exe.exact()));
        let holds = is_command || of_program.holds_for_children();
        // strace(1), chroot(8) and others keep some techniques from the programs that they start.
        let is_lost = |row: &PlanRow| of_command.lost_techniques.contains(&row.technique);
        of_command.refusals().is_empty()
            && holds
            && (is_command || !of_program.rows.iter().any(is_lost))
            && helps(&of_program, option)
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
        let directory = planned.directory.as_deref().map(os_string_of);
        let of_command = self.plan_of(&planned.command, directory.as_deref().map(Path::new), option)?;
        let mut programs = proposal.programs.iter();
        programs.all(|image| self.reaches(&of_command, image, option)).then_some(planned)
    }
}

fn directory_of(image: &Image) -> Option<PathBuf> {
    image.directory.as_ref().map(Untrusted::to_path)
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
