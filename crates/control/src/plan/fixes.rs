//! Applies one entry of a runtime's fixes to the plan.

use super::PlanBuilder;
use weir_model::RuntimeFix;
use weir_model::run::{Effect, PlanRow, Technique};

impl PlanBuilder<'_> {
    /// Applies a fix that needs neither the library nor the supervisor. The callers handle those two.
    pub(super) fn apply(&mut self, option: &str, fix: RuntimeFix) {
        let runtime = self.plan.runtime;
        match fix {
            RuntimeFix::Environment { .. } | RuntimeFix::Hook(_) | RuntimeFix::HookSubstitute(_)
                if runtime.ignores_environment.applies(&self.plan.program.arguments) =>
            {
                let why = format!("its options make {} ignore its environment", runtime.facts.name);
                match runtime.facts.fixes.max_delay {
                    RuntimeFix::Impossible(unread) => {
                        self.row(PlanRow::refused(option, format!("{why}; {unread}")))
                    }
                    _ => self.short_delay_substitute(option, &why),
                }
            }
            RuntimeFix::Environment { variables, effect } => {
                self.plan.variables.extend(variables);
                self.row(PlanRow::honoured(option, Technique::Environment, effect));
            }
            RuntimeFix::Hook(text) => self.add_hook(option, text, Effect::Whole),
            RuntimeFix::HookSubstitute(text) => self.add_hook(option, text, Effect::StandIn),
            RuntimeFix::Options { options, effect } => self.add_options(option, options, effect),
            RuntimeFix::Terminal(why) if self.request.is_empty() && !self.host.stdout_is_terminal => {
                let advice = "`weir run --pty` gives it a terminal, to which it writes line by line";
                self.row_without_effect(option, format!("{why}; {advice}"));
            }
            RuntimeFix::Impossible(why) if self.request.is_empty() => {
                self.row_without_effect(option, why.into());
            }
            RuntimeFix::NoEffect(why) | RuntimeFix::IfForced(why) => {
                self.row_without_effect(option, why.into());
            }
            RuntimeFix::Terminal(why) => self.terminal_substitute(option, why),
            RuntimeFix::NotNeeded(text) => {
                self.row(PlanRow::honoured(option, Technique::Nothing, text).with_effect(Effect::Already));
            }
            RuntimeFix::Impossible(why) => self.row(PlanRow::refused(option, why)),
            RuntimeFix::Library | RuntimeFix::Outside => {
                unreachable!("the callers handle the library and the supervisor")
            }
        }
    }

    /// Adds a row for a command that runs unchanged. Without options it gets no terminal, to which some programs write other bytes.
    fn row_without_effect(&mut self, option: &str, why: String) {
        self.plan.rows.push(PlanRow::honoured(option, Technique::Nothing, why).with_effect(Effect::Part));
    }

    fn add_hook(&mut self, option: &str, text: &str, effect: Effect) {
        self.plan.hooks.get_or_insert_with(|| "line".into());
        self.row(PlanRow::honoured(option, Technique::Environment, text).with_effect(effect));
    }

    /// Inserts options after the command's name. A script's first line cannot be changed.
    fn add_options(&mut self, option: &str, options: &[&str], effect: &str) {
        if self.plan.program.script {
            let why = format!("weir cannot add options to a script's first line; add them there ({effect})");
            return self.row(PlanRow::refused(option, why));
        }
        if !self.plan.command[1..].starts_with(&options.iter().map(Into::into).collect::<Vec<_>>()) {
            self.plan.command.splice(1..1, options.iter().map(Into::into));
        }
        self.row(PlanRow::honoured(option, Technique::Option, effect));
    }
}
