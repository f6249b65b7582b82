//! One remedy of a runtime's table, done and said.

use super::PlanBuilder;
use crate::plan::rows::{Effect, PlanRow, Technique};
use crate::runtimes::RuntimeFix;

impl PlanBuilder<'_> {
    /// Whatever needs neither the library nor the follower to be weighed against something else.
    pub(super) fn apply(&mut self, wish: &str, remedy: RuntimeFix) {
        let runtime = self.plan.runtime;
        match remedy {
            RuntimeFix::Variables(..) | RuntimeFix::Hook(_) | RuntimeFix::HookStandsIn(_)
                if (runtime.deaf)(&self.plan.program) =>
            {
                let why = format!("its options keep {} from looking at its environment", runtime.name);
                self.briefly(wish, &why);
            }
            RuntimeFix::Variables(variables, text) => {
                self.plan.variables.extend(variables);
                self.row(PlanRow::whole(wish, Technique::Environment, text));
            }
            RuntimeFix::Hook(text) => self.hooked(wish, text, Effect::Whole),
            RuntimeFix::HookStandsIn(text) => self.hooked(wish, text, Effect::StandIn),
            RuntimeFix::Options(options, text) => self.options(wish, options, text),
            RuntimeFix::Already(text) => {
                self.row(PlanRow::whole(wish, Technique::Nothing, text).but(Effect::Already));
            }
            RuntimeFix::Not(text) => self.row(PlanRow::not(wish, text)),
            RuntimeFix::Library | RuntimeFix::Outside | RuntimeFix::OutsidePart(_) => {
                unreachable!("weighed by those who call")
            }
        }
    }

    fn hooked(&mut self, wish: &str, text: &str, effect: Effect) {
        self.plan.hooks.get_or_insert_with(|| "line".into());
        self.row(PlanRow::whole(wish, Technique::Environment, text).but(effect));
    }

    /// Options are put behind the command's name; a script's own line cannot be changed.
    fn options(&mut self, wish: &str, options: &[&str], text: &str) {
        if self.plan.program.script {
            let text = format!("a script's first line takes no more options; write them there ({text})");
            return self.row(PlanRow::not(wish, text));
        }
        if !self.plan.command[1..].starts_with(&options.iter().map(Into::into).collect::<Vec<_>>()) {
            self.plan.command.splice(1..1, options.iter().map(Into::into));
        }
        self.row(PlanRow::whole(wish, Technique::Option, text));
    }
}
