//! The programs that a shell starts: what a plan does for them, and what is out of its reach.

use std::ffi::OsString;

use weir_model::SourceLanguage;
use weir_model::run::{Effect, PlanRow, Technique};

use super::{Plan, PlanBuilder, plan_within, shell_commands};

/// The most shells that start each other in a command.
const SHELLS_DEEP: u32 = 4;

impl PlanBuilder<'_> {
    /// Extends the plan of `sh -c SCRIPT` to the programs that the script names: they inherit the variables that they need, and
    /// each row names those that it does not reach.
    pub(super) fn add_children(&mut self, depth: u32) {
        let is_shell = self.plan.runtime.facts.language == SourceLanguage::Shell;
        let script = shell_commands::script(&self.plan.program.arguments);
        let Some(script) = script.filter(|_| is_shell && depth < SHELLS_DEEP) else { return };
        for command in shell_commands::commands(&script) {
            let child = plan_within(&command, self.request, self.host, depth + 1);
            for number in 0..self.plan.rows.len() {
                let Some(of_child) =
                    child.rows.iter().find(|row| row.option == self.plan.rows[number].option)
                else {
                    continue;
                };
                if of_child.technique == Technique::Environment {
                    self.inherit_environment(&child);
                }
                if let Some(why) = not_reached(&command, &child, of_child) {
                    let name = command[0].to_string_lossy();
                    self.add_unreached(number, &format!("{name} ({why})"));
                }
            }
        }
    }

    fn inherit_environment(&mut self, child: &Plan) {
        for variable in &child.variables {
            if !self.plan.variables.contains(variable) {
                self.plan.variables.push(*variable);
            }
        }
        if self.plan.hooks.is_none() {
            self.plan.hooks.clone_from(&child.hooks);
        }
    }

    fn add_unreached(&mut self, number: usize, child: &str) {
        let row = &mut self.plan.rows[number];
        if row.effect == Effect::Not {
            return;
        }
        let known = row.unreached.take();
        let all = known.map_or(child.to_owned(), |known| format!("{known}, {child}"));
        *row = row.clone().without(Some(all));
    }
}

/// Returns why an option does not reach a program that a shell starts; None if it does.
fn not_reached(command: &[OsString], child: &Plan, row: &PlanRow) -> Option<String> {
    let is_for_command = match row.technique {
        // The script may give the option itself.
        Technique::Option => child.command != command,
        technique => technique == Technique::Terminal,
    };
    if is_for_command && row.option != "--pty" && row.effect != Effect::Not {
        let name = child.program.names.first()?;
        return Some(format!("only as the command itself: weir run -- {name} …"));
    }
    match (&row.unreached, row.effect) {
        (Some(unreached), _) => Some(unreached.clone()),
        (None, Effect::Not) => Some(row.text.clone()),
        (None, Effect::Part | Effect::StandIn) if row.technique == Technique::Nothing => {
            Some(row.text.clone())
        }
        _ => None,
    }
}
