//! The options that guarantee something about bytes: --max-delay, --coalesce, --rescue, --fix-fork, --fix-order,
//! --private-stdin; and --pty.

use std::time::Duration;

use weir_model::duration::format_seconds;
use weir_model::{RuntimeFix, RuntimeId};
use weir_walkers::ruby_rescued_at_end;

use super::fixes::starts_with;
use super::request::{BufferMode, CoalesceScope};
use super::{PlanBuilder, RECOMMENDED_DELAY};
use weir_model::run::{Effect, PlanRow, Technique};

/// The option as a row names it.
pub(super) const PRIVATE_STDIN: &str = "--private-stdin";

impl PlanBuilder<'_> {
    pub(super) fn add_guarantees(&mut self) {
        let recommended = self.request.is_empty().then_some(RECOMMENDED_DELAY);
        if let Some(delay) = self.request.max_delay.or(recommended) {
            self.add_max_delay(delay);
        }
        if let Some(scope) = self.request.coalesce {
            self.add_coalesce(scope);
        }
        if self.request.rescue {
            self.add_rescue();
        }
        if self.request.fix_fork {
            self.add_fix_fork();
        }
        self.resolve_coalesce_conflicts();
        if self.request.fix_order {
            self.add_fix_order();
        }
        if self.request.private_stdin {
            self.add_private_stdin();
        }
        if self.request.pty {
            self.plan.terminal = true;
            let text = "separate terminals for standard output and standard error";
            self.row(PlanRow::honoured("--pty", Technique::Terminal, text));
        }
    }

    fn add_max_delay(&mut self, delay: Duration) {
        let shown = without_space(delay);
        let option = format!("--max-delay {shown}");
        let fixes = self.plan.runtime.facts.fixes;
        // A hook has one mode. If a full buffer is the runtime's default, the hook is free for the delay.
        let full = self.plan.hooks.as_ref().is_some_and(|mode| mode.starts_with("full"));
        if full && matches!(fixes.fully_buffered, RuntimeFix::NotNeeded(_)) {
            self.plan.hooks = None;
        }
        let hooked = matches!(fixes.max_delay, RuntimeFix::Hook(_) | RuntimeFix::HookSubstitute(_));
        if hooked && full && self.plan.hooks.is_some() {
            let name = self.plan.runtime.facts.name;
            let text = format!("{name} has one mode, that of --full: bytes go out when the buffer is full");
            let row = PlanRow::honoured(&option, Technique::Nothing, text);
            return self.row(row.with_effect(Effect::StandIn));
        }
        self.plan.hooks.get_or_insert_with(|| format!("delay:{}", delay.as_secs_f64()));
        if self.not_traceable().is_none() {
            self.bound_delay(delay);
        }
        let mut text = format!("bytes older than {shown} are written");
        // Go's scheduler polls again after an interrupted call.
        if self.plan.runtime.facts.id != RuntimeId::GO {
            text += "; later if it only waits in epoll_wait(2) calls of less than 1 s";
        }
        match fixes.max_delay {
            RuntimeFix::Outside => self.by_supervisor(&option, &text),
            RuntimeFix::NotNeeded(_) if self.has_drained_buffers() => self.by_supervisor(&option, &text),
            // mawk -W interactive costs speed, and gains nothing if all input is there.
            RuntimeFix::Options { .. } if self.host.stdin_is_file || self.plan.program.script => {
                self.by_supervisor(&option, &text);
            }
            // Without a wish of the user, weir adds no option with which a program can lose bytes.
            RuntimeFix::Options { options, unreached, .. }
                if self.request.is_empty() && !starts_with(&self.plan.program.arguments, options) =>
            {
                self.by_supervisor(&option, &text);
                if let Some(row) = self.plan.rows.last_mut().filter(|row| row.effect != Effect::Not) {
                    *row = row.clone().without(Some(unreached.into()));
                }
            }
            other => self.apply(&option, other),
        }
    }

    /// Adds a row for the supervisor, or a terminal as the substitute.
    fn by_supervisor(&mut self, option: &str, text: &str) {
        let text = match self.plan.runtime.facts.limits.unconverted {
            Some(unconverted) => format!("{text}, {unconverted}"),
            None => text.into(),
        };
        match self.not_traceable() {
            Some(why) => self.terminal_substitute(option, &why),
            None => self.row(PlanRow::honoured(option, Technique::Outside, text)),
        }
    }

    fn add_coalesce(&mut self, scope: CoalesceScope) {
        let option = match scope {
            CoalesceScope::All => "--coalesce",
            CoalesceScope::Files => "--coalesce=files",
        };
        if let Some(why) = self.host.no_syscall_dispatch.or(self.plan.runtime.facts.limits.coalesce) {
            self.row(PlanRow::refused(option, why));
        } else if let Some(why) = self.not_preloadable() {
            self.row(PlanRow::refused(option, why));
        } else if let Some(why) = self.not_traceable().filter(|_| self.host.tracer.is_none()) {
            self.row(PlanRow::refused(option, format!("{why}: a kill would lose the gathered bytes")));
        } else {
            self.library();
            self.plan.coalesce = Some(scope);
            self.plan.gathered_delay = self.request.max_delay.unwrap_or(RECOMMENDED_DELAY);
            if self.host.tracer.is_none() {
                self.supervision();
            }
            self.coalesce_row(option);
        }
    }

    fn coalesce_row(&mut self, option: &str) {
        let text =
            "tiny reads and writes are gathered, and written before any call that could reveal the delay";
        let musl = self.plan.program.executable.as_ref().is_some_and(|executable| executable.musl);
        let unreached = match (musl, self.request.rescue) {
            (true, _) => Some("the calls of musl's stdio"),
            (false, true) => Some("the calls of the C library's stdio (because of --rescue)"),
            (false, false) => None,
        };
        let mut row = PlanRow::honoured(option, Technique::Library, text).without(unreached.map(Into::into));
        if let Some(why) = self.traced_already() {
            row = row.with_effect(Effect::Part);
            row.text += &format!("; but a kill loses gathered bytes: {why}");
        }
        self.row(row);
    }

    /// Turns off draining from outside if calls are gathered. Gathered bytes are older than those of a stream, and
    /// the stream's next flush is gathered too: the supervisor can neither write ahead of the gathered bytes nor
    /// skip bytes in a flush that it does not see.
    fn resolve_coalesce_conflicts(&mut self) {
        let Some(supervision) = self.plan.supervision.as_mut().filter(|_| self.plan.coalesce.is_some())
        else {
            return;
        };
        let (delay, fork) = (supervision.delay.take(), std::mem::take(&mut supervision.fix_fork));
        if delay.is_some() {
            let text = "holds for gathered bytes; the program's streams keep their own buffering";
            self.replace_outside_row("--max-delay", Effect::Part, text);
        }
        if fork {
            self.library().standard[1].get_or_insert_with(|| "none".into());
            self.plan.hooks = Some("none".into());
            let text = "standard output is unbuffered: its bytes are gathered at once, and written at a fork";
            self.replace_outside_row("--fix-fork", Effect::StandIn, text);
        }
    }

    /// Replaces the rows of an option that the supervisor honoured.
    fn replace_outside_row(&mut self, option: &str, effect: Effect, text: &str) {
        let by_supervisor =
            |row: &&mut PlanRow| row.option.starts_with(option) && row.technique == Technique::Outside;
        for row in self.plan.rows.iter_mut().filter(by_supervisor) {
            (row.effect, row.technique, row.text) = (effect, Technique::Library, text.into());
        }
    }

    fn add_rescue(&mut self) {
        let option = "--rescue";
        if let Some(why) = self.not_traceable() {
            let text = format!("{why}: weir cannot write the program's bytes when it dies");
            return self.row(PlanRow::refused(option, text));
        }
        self.supervision().rescue = true;
        self.library().exec_flush = true;
        let text = "bytes that are pending when it dies are written to their file, pipe or terminal";
        match self.plan.runtime.facts.fixes.rescue {
            RuntimeFix::Outside => self.by_supervisor(option, text),
            RuntimeFix::NotNeeded(_) if self.has_drained_buffers() => self.by_supervisor(option, text),
            other => {
                if matches!(other, RuntimeFix::HookSubstitute(_)) {
                    self.plan.hooks.get_or_insert_with(|| "delay:0.01".into());
                }
                self.apply(option, other);
                self.name_rescue_of_ruby();
            }
        }
    }

    /// Adds to the row of a hook of Ruby what becomes of the bytes that it leaves at the end: that depends on the version.
    fn name_rescue_of_ruby(&mut self) {
        if self.plan.runtime.facts.id != RuntimeId::RUBY {
            return;
        }
        let at_end = ruby_rescued_at_end(self.plan.program.executable_path.as_deref());
        if let Some(row) = self.plan.rows.last_mut().filter(|row| row.technique == Technique::Environment) {
            row.text += &format!("; {at_end}");
        }
    }

    fn add_fix_fork(&mut self) {
        let option = "--fix-fork";
        if self.not_traceable().is_none() {
            self.supervision().fix_fork = true;
        }
        let text = "bytes that are pending at a fork are written then, and by neither process again";
        match (self.plan.runtime.facts.fixes.fork, self.not_traceable()) {
            (RuntimeFix::Outside, None) => self.by_supervisor(option, text),
            (RuntimeFix::Outside, Some(why)) => self.row(PlanRow::refused(option, why)),
            (other, _) => self.apply(option, other),
        }
    }

    fn add_fix_order(&mut self) {
        let option = "--fix-order";
        self.library().order = true;
        match (self.plan.runtime.facts.fixes.order, self.not_preloadable()) {
            (RuntimeFix::Library, None) => {
                // The program may start others, of any runtime.
                self.configure_hooks(BufferMode::None);
                let text = "a stream is flushed before a write(2) to its descriptor";
                self.row(PlanRow::honoured(option, Technique::Library, text));
            }
            (RuntimeFix::Library, Some(why)) => self.row(PlanRow::refused(option, why)),
            (RuntimeFix::Hook(text), _) => {
                // Line buffering is not enough: a write(2) can come in the middle of a line.
                self.plan.hooks = Some("none".into());
                self.apply(option, RuntimeFix::Hook(text));
            }
            (other, _) => self.apply(option, other),
        }
    }

    fn add_private_stdin(&mut self) {
        let option = PRIVATE_STDIN;
        // No file has this inode. A loop in the command can read a file even if standard input is closed.
        const CLOSED: (u64, u64) = (0, 0);
        self.library().private_stdin = Some(self.host.stdin_inode.unwrap_or(CLOSED));
        let row = match self.not_preloadable() {
            None => {
                let text =
                    "programs that it starts find the end of the file on a standard input that it reads";
                PlanRow::honoured(option, Technique::Library, text)
            }
            Some(why) => {
                let text = format!(
                    "holds for the command's own standard input and for dynamic programs, not for a file that the \
                     command reads in a loop: {why}"
                );
                PlanRow::honoured(option, Technique::Library, text).with_effect(Effect::Part)
            }
        };
        self.row(row);
    }
}

/// Formats a duration as users type it: `100ms`.
fn without_space(delay: Duration) -> String {
    format_seconds(delay.as_secs_f64()).replace(' ', "")
}
