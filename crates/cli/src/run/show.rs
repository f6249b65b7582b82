//! What `weir run` says: the plan, what stands in, what was rescued; on standard error or as JSON.

use weir_control::launch::OutputAfterExit;
use weir_control::plan::Plan;
use weir_model::Size;
use weir_model::run::{ProgramProperties, RunDocument, RunOutcome, RunPlan, SCHEMA};
use weir_report::why::screen;

use super::{Args, When};
use crate::console;
use crate::output::OutputFiles;
use crate::trace::status::Failure;
use weir_tui::style::{stderr_style, stdout_style};

/// Where it goes, opened before the command runs.
pub struct Outputs {
    output: OutputFiles,
}

impl Outputs {
    /// Opens what was asked for.
    pub fn open(args: &Args) -> Result<Outputs, Failure> {
        Ok(Outputs { output: args.output.open().map_err(Failure::own)? })
    }

    /// What is to be written when the command has ended.
    pub fn behind(&self) -> OutputAfterExit {
        match (self.output.wants_json(), self.output.uses_stdout()) {
            (false, _) => OutputAfterExit::Nothing,
            (true, false) => OutputAfterExit::File,
            (true, true) => OutputAfterExit::Stdout,
        }
    }

    /// --why: before the command runs, or on standard output in its place.
    pub fn plan(&self, args: &Args, plan: &Plan) -> Result<(), Failure> {
        let Some(when) = args.why else { return Ok(()) };
        let said = match when {
            When::First => console::print_error(&screen(&run_plan(plan), &stderr_style())),
            When::Only if self.output.uses_stdout() => Ok(()),
            When::Only => console::print(&screen(&run_plan(plan), &stdout_style())),
        };
        said.map_err(|error| Failure::own(format!("the plan cannot be written: {error}")))
    }

    /// The JSON document; without an outcome the command was not run.
    pub fn document(&mut self, plan: &Plan, outcome: Option<&RunOutcome>) -> Result<(), Failure> {
        let document = RunDocument { schema: SCHEMA.into(), plan: run_plan(plan), outcome: outcome.cloned() };
        self.output.write_json(&document).map_err(Failure::own)
    }
}

fn run_plan(plan: &Plan) -> RunPlan {
    let words =
        |words: &[std::ffi::OsString]| words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let program = &plan.program;
    RunPlan {
        command: words(&plan.command),
        program: ProgramProperties {
            path: program.path.as_deref().map(|path| path.to_string_lossy().into_owned()),
            runtime: plan.runtime.name.into(),
            script: program.script,
            linked_statically: program.elf.as_ref().is_some_and(|elf| elf.is_static),
            musl: program.elf.as_ref().is_some_and(|elf| elf.musl),
            foreign: program.elf.as_ref().is_some_and(|elf| !elf.native),
            privileged: program.privileged,
        },
        rows: plan.rows.clone(),
    }
}

/// What stands in for a wish, and what cannot be done here, before the command runs.
pub fn remarks(args: &Args, plan: &Plan, unable: &[String]) {
    if args.output.is_quiet() || args.why.is_some() && unable.is_empty() {
        return;
    }
    let stand_ins = if args.why.is_some() { Vec::new() } else { plan.remarks() };
    for remark in stand_ins.iter().chain(unable) {
        complain!("weir: {remark}");
    }
}

/// What was rescued, and what could not be done.
pub fn outcome(args: &Args, outcome: &RunOutcome) {
    if args.output.is_quiet() {
        return;
    }
    for one in &outcome.rescued {
        let size = Size(one.bytes);
        let whose = format!("{size} of {} ({}), fd {} ({})", one.comm, one.pid, one.fd, one.path);
        match &one.saved {
            None => complain!("weir: rescued {whose}"),
            Some(saved) => {
                complain!("weir: saved {whose} in {}: {}", saved.path, saved.why);
            }
        }
    }
    outcome.unable.iter().for_each(|text| complain!("weir: {text}"));
}
