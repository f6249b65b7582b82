//! The report of `weir run`: the plan, substitutes, rescued bytes; on standard error or as JSON.

use std::path::Path;

use weir_bench::settings::environment;
use weir_control::launch::OutputAfterExit;
use weir_control::plan::Plan;
use weir_model::run::{RunDocument, RunOutcome, SCHEMA};
use weir_report::plan::screen;
use weir_report::rescue::rescue_lines;
use weir_sys::errno_text;
use weir_tui::style::{stderr_style, stdout_style};

use super::{Args, WhyMode};
use crate::console;
use crate::exit_status::CommandFailure;
use crate::output::OutputFiles;

/// The reports of one run.
pub struct RunReport<'a> {
    args: &'a Args,
    files: OutputFiles,
}

impl<'a> RunReport<'a> {
    /// Opens the output files before the command runs.
    pub fn open(args: &'a Args) -> Result<Self, CommandFailure> {
        Ok(Self { args, files: args.output.open().map_err(CommandFailure::of_weir)? })
    }

    /// Returns what remains to be written when the command has ended.
    pub fn after_exit(&self) -> OutputAfterExit {
        match (self.files.wants_document(), self.files.uses_stdout()) {
            (false, _) => OutputAfterExit::None,
            (true, false) => OutputAfterExit::File,
            (true, true) => OutputAfterExit::Stdout,
        }
    }

    /// Prints the plan if `--why` asks for it: to standard error before the command runs, or to standard output if the
    /// command does not run.
    pub fn print_plan(&self, plan: &Plan) -> Result<(), CommandFailure> {
        let printed = match self.args.why {
            None => Ok(()),
            Some(WhyMode::Only) if self.files.uses_stdout() => Ok(()),
            Some(WhyMode::Only) => console::print_screen(&screen(&plan.document(), &stdout_style())),
            Some(WhyMode::First) => console::print_error(&screen(&plan.document(), &stderr_style()))
                .map_err(|error| format!("standard error: write: {}", errno_text(&error))),
        };
        printed.map_err(|error| CommandFailure::of_weir(format!("the plan cannot be written: {error}")))
    }

    /// Prints the substitutes in the plan, and `problems`, which weir found when it started the command.
    pub fn print_remarks(&self, plan: &Plan, problems: &[String]) {
        if self.args.output.is_quiet() {
            return;
        }
        let has_printed_plan = self.args.why.is_some();
        let remarks = if has_printed_plan { Vec::new() } else { plan.remarks() };
        for remark in remarks.iter().chain(problems) {
            eprintln_lossy!("weir: {remark}");
        }
    }

    /// Prints the rescued bytes and the problems of a run that has ended; with --quiet only those of `lost_output`, which are errors.
    pub fn print_outcome(&self, outcome: &RunOutcome, lost_output: &[String]) {
        if self.args.output.is_quiet() {
            return lost_output.iter().for_each(|line| eprintln_lossy!("weir: {line}"));
        }
        for line in rescue_lines(outcome).iter().chain(&outcome.limitations) {
            eprintln_lossy!("weir: {line}");
        }
    }

    /// Writes the document if `--json` or `--html` was given. `outcome` is `None` if the command did not run.
    pub fn write_document(
        &mut self,
        plan: &Plan,
        outcome: Option<&RunOutcome>,
    ) -> Result<(), CommandFailure> {
        if !self.files.wants_document() {
            return Ok(());
        }
        let document = RunDocument {
            schema: SCHEMA.into(),
            plan: plan.document(),
            outcome: outcome.cloned(),
            environment: environment(Path::new(".")),
        };
        self.files.write_document(&document).map_err(CommandFailure::of_weir)
    }
}
