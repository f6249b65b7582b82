//! Applies one entry of a runtime's fixes to the plan.

use std::ffi::OsString;

use super::PlanBuilder;
use super::executable::interpreter_options;
use weir_model::RuntimeFix;
use weir_model::run::{Effect, PlanRow, Technique};

impl PlanBuilder<'_> {
    /// Applies a fix that needs neither the library nor the supervisor. The callers handle those two.
    pub(super) fn apply(&mut self, option: &str, fix: RuntimeFix) {
        if let Some(why) = self.why_ignored(fix) {
            return match self.plan.runtime.facts.fixes.max_delay {
                RuntimeFix::Impossible(unread) => {
                    self.row(PlanRow::refused(option, format!("{why}; {unread}")));
                }
                _ => self.short_delay_substitute(option, &why),
            };
        }
        match fix {
            RuntimeFix::Environment { variables, effect } => {
                self.plan.variables.extend(variables);
                self.row(PlanRow::honoured(option, Technique::Environment, effect));
            }
            RuntimeFix::Hook(text) => self.add_hook(option, text, Effect::Whole),
            RuntimeFix::HookSubstitute(text) => self.add_hook(option, text, Effect::StandIn),
            RuntimeFix::Options { options, effect, limit, .. } => {
                self.add_options(option, options, effect, limit);
            }
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

    /// Returns why a fix has no effect: because of options of the interpreter, in the command or in a script's first line.
    fn why_ignored(&self, fix: RuntimeFix) -> Option<String> {
        let (ignores, name) = (&self.plan.runtime.ignores_environment, self.plan.runtime.facts.name);
        let is_hook = matches!(fix, RuntimeFix::Hook(_) | RuntimeFix::HookSubstitute(_));
        if !is_hook && !matches!(fix, RuntimeFix::Environment { .. }) {
            return None;
        }
        let options = interpreter_options(&self.plan.program, self.plan.runtime);
        if ignores.ignores_variables(options) {
            return Some(format!("its options make {name} ignore its environment"));
        }
        let is_ignored = is_hook && ignores.ignores_hook(options);
        is_ignored.then(|| format!("its options keep {name} from loading weir's file"))
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
    fn add_options(&mut self, option: &str, options: &[&str], effect: &str, limit: &str) {
        if self.plan.program.script {
            let why = format!(
                "weir cannot add options to a script's first line; add them there ({effect}; {limit})"
            );
            return self.row(PlanRow::refused(option, why));
        }
        let mut row = PlanRow::honoured(option, Technique::Option, effect);
        // The user knows the limits of options in the command.
        if !starts_with(&self.plan.program.arguments, options) {
            row = row.with_effect(Effect::Part);
            row.text += &format!("; {limit}");
        }
        if !starts_with(&self.plan.command[1..], options) {
            self.plan.command.splice(1..1, options.iter().map(Into::into));
        }
        self.row(row);
    }
}

/// Returns whether the words of a command begin with these options.
pub(super) fn starts_with(words: &[OsString], options: &[&str]) -> bool {
    words.len() >= options.len() && words.iter().zip(options).all(|(word, option)| word == option)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::super::program::ResolvedProgram;
    use super::super::request::{BufferMode, RunRequest, StandardStream};
    use super::super::tests::{lines, plan_for, plan_on, words};
    use super::super::{HostCapabilities, plan};
    use super::*;

    /// The kernel passes the words of a script's first line to the interpreter before the script, and its arguments after it.
    #[test]
    fn options_in_the_first_line_of_a_script_count_and_its_arguments_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let technique = |name: &str, line: &str, argument: &str, mode: BufferMode| {
            let path = dir.path().join(name);
            std::fs::write(&path, format!("#!{line}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            let modes = vec![(StandardStream::Output, mode)];
            let request = RunRequest { modes, ..RunRequest::default() };
            plan(&[path.into(), argument.into()], &request, &HostCapabilities::default()).rows[0].technique
        };
        let (line, none) = (BufferMode::Line, BufferMode::None);
        for (first, argument, mode, expected) in [
            ("/nowhere/python3 -Es", "x", line, Technique::Outside),
            ("/nowhere/python3 -S", "x", line, Technique::Outside),
            ("/nowhere/python3 -S", "x", none, Technique::Environment),
            ("/nowhere/python3", "-I", line, Technique::Environment),
            ("/usr/bin/env -S /nowhere/python3 -I", "x", none, Technique::Outside),
            ("/nowhere/perl -T", "x", line, Technique::Outside),
            ("/nowhere/ruby", "--disable-all", line, Technique::Environment),
        ] {
            assert_eq!(technique("script", first, argument, mode), expected, "#!{first} with {argument}");
        }
        // pyenv has such a script, which passes its arguments on.
        assert_eq!(technique("python3", "/bin/sh -e", "-I", line), Technique::Outside);
        let pyenv = dir.path().join("python3");
        let [ignoring, plain] = [" -I", ""].map(|option| format!("{}{option}", pyenv.display()));
        assert_eq!(technique("script", &ignoring, "x", line), Technique::Outside);
        assert_eq!(technique("script", &plain, "-I", line), Technique::Environment);
    }

    #[test]
    fn mawk_gets_its_option_once_and_only_for_a_pipe() {
        let options = words("mawk -W interactive 1");
        if ResolvedProgram::of(&options).path.is_none() {
            return; // mawk is not installed; tests/run_matrix.rs reports it
        }
        assert_eq!(plan_for("mawk 1", lines()).command, options);
        assert!(
            !plan_for("mawk 1", lines()).holds_for_children()
                && plan_for("cut -c1", lines()).holds_for_children()
        );
        assert_eq!(plan_for("mawk -W interactive 1", lines()).command, options);
        let whole = HostCapabilities { stdin_is_file: true, ..HostCapabilities::default() };
        let delay = RunRequest { max_delay: Some(Duration::from_millis(5)), ..RunRequest::default() };
        assert_eq!(plan_on(whole, "mawk 1", delay.clone()).command, words("mawk 1"));
        // With -W interactive, mawk loses bytes after a NUL byte: the user must ask for it.
        let remark = |command: &str, request: RunRequest, expected: &str| {
            let remarks = plan_for(command, request).remarks();
            assert!(remarks.len() == 1 && remarks[0].contains(expected), "{command}: {remarks:?}");
        };
        remark("mawk 1", delay, "must have no NUL bytes");
        remark("mawk 1", RunRequest::default(), "has read and not used (mawk -W interactive");
        assert_eq!(plan_for("mawk 1", RunRequest::default()).command, words("mawk 1"));
        assert!(plan_for("mawk -W interactive 1", RunRequest::default()).remarks().is_empty());
    }
}
