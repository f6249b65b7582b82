//! Promises about bytes: --max-delay, --coalesce, --rescue, --fix-fork, --fix-order, --private-stdin, --pty.

use std::time::Duration;

use weir_model::duration::format_seconds;

use super::{PlanBuilder, RECOMMENDED_DELAY};
use crate::plan::request::CoalesceScope;
use crate::plan::rows::{Effect, PlanRow, Technique};
use crate::runtimes::RuntimeFix;

impl PlanBuilder<'_> {
    pub(super) fn promises(&mut self) {
        let recommended = self.request.is_empty().then_some(RECOMMENDED_DELAY);
        if let Some(delay) = self.request.max_delay.or(recommended) {
            self.max_delay(delay);
        }
        if let Some(coalesce) = self.request.coalesce {
            self.coalesce(coalesce);
        }
        if self.request.rescue {
            self.rescue();
        }
        if self.request.fix_fork {
            self.fix_fork();
        }
        self.streams_beside_gathering();
        if self.request.fix_order {
            self.fix_order();
        }
        if self.request.private_stdin {
            self.private_stdin();
        }
        if self.request.pty {
            self.plan.terminal = true;
            let text = "terminals of their own for standard output and standard error";
            self.row(PlanRow::whole("--pty", Technique::Terminal, text));
        }
    }

    fn max_delay(&mut self, delay: Duration) {
        let shown = humantime(delay);
        let wish = format!("--max-delay {shown}");
        // A hook does one thing: with a mode that was asked for it keeps no delay, but where that mode is there anyway.
        let full = self.plan.hooks.as_ref().is_some_and(|does| does.starts_with("full"));
        if full && matches!(self.plan.runtime.full, RuntimeFix::Already(_)) {
            self.plan.hooks = None;
        }
        let hooked = matches!(self.plan.runtime.delay, RuntimeFix::Hook(_) | RuntimeFix::HookStandsIn(_));
        if hooked && full && self.plan.hooks.is_some() {
            let name = self.plan.runtime.name;
            let text =
                format!("{name} has one mode, that of --full: what waits goes out when the buffer is full");
            return self.row(PlanRow::whole(&wish, Technique::Nothing, text).but(Effect::StandIn));
        }
        self.plan.hooks.get_or_insert_with(|| format!("delay:{}", delay.as_secs_f64()));
        if self.unfollowed().is_none() {
            self.delay(delay);
        }
        match self.plan.runtime.delay {
            RuntimeFix::Outside => {
                self.follow(&wish, &format!("what waits longer than {shown} is brought out"), None)
            }
            RuntimeFix::OutsidePart(not) => {
                self.follow(&wish, &format!("what waits longer than {shown} is brought out"), Some(not));
            }
            // It would only make it slower where all its input is there.
            RuntimeFix::Options(..) if self.around.input_is_whole || self.plan.program.script => {
                self.follow(&wish, &format!("what waits longer than {shown} is brought out"), None);
            }
            other => self.apply(&wish, other),
        }
    }

    /// From outside, or else by a terminal.
    fn follow(&mut self, wish: &str, text: &str, not: Option<&str>) {
        match (self.unfollowed(), not) {
            (Some(why), _) => self.terminal(wish, &why),
            (None, None) => self.row(PlanRow::whole(wish, Technique::Outside, text)),
            (None, Some(not)) => {
                let text = format!("{text}; not {not}");
                self.row(PlanRow::whole(wish, Technique::Outside, text).but(Effect::Part));
            }
        }
    }

    fn coalesce(&mut self, what: CoalesceScope) {
        let (wish, value) = match what {
            CoalesceScope::All => ("--coalesce", CoalesceScope::All),
            CoalesceScope::Files => ("--coalesce=files", CoalesceScope::Files),
        };
        let never = match self.plan.runtime.name {
            "Go" => Some("Go makes its system calls itself: they pass by every library"),
            "Ruby" => Some("Ruby has a handler for SIGSYS, by which calls would be intercepted"),
            "Java" => {
                Some("Java has several threads: one could let others see what another has not written yet")
            }
            "Node" => {
                Some("Node has several threads: one could let others see what another has not written yet")
            }
            _ => None,
        };
        if let Some(why) = self.around.no_dispatch.or(never) {
            self.row(PlanRow::not(wish, why));
        } else if let Some(why) = self.unloaded() {
            self.row(PlanRow::not(wish, why));
        } else if let Some(why) = self.unfollowed() {
            self.row(PlanRow::not(wish, format!("{why}: at a kill, what was gathered would be lost")));
        } else {
            self.library();
            self.plan.coalesce = Some(value);
            self.plan.gathered_delay = self.request.max_delay.unwrap_or(RECOMMENDED_DELAY);
            self.outside();
            let text =
                "tiny reads and writes are gathered; all is out before a call by which it could be noticed";
            let row = PlanRow::whole(wish, Technique::Library, text);
            let musl = self.plan.program.elf.as_ref().is_some_and(|elf| elf.musl);
            self.row(match musl {
                false if self.request.rescue => {
                    let text = format!("{text}; beside --rescue not what the C library's stdio writes");
                    PlanRow { text, ..row }.but(Effect::Part)
                }
                false => row,
                true => {
                    let text = format!("{text}; not what musl's stdio writes, which passes by every library");
                    PlanRow { text, ..row }.but(Effect::Part)
                }
            });
        }
    }

    /// What is gathered is older than what a stream holds, and a later flush of the stream is gathered as well:
    /// the follower can neither write ahead of the one nor leave something out of the other.
    fn streams_beside_gathering(&mut self) {
        let Some(outside) = self.plan.outside.as_mut().filter(|_| self.plan.coalesce.is_some()) else {
            return;
        };
        let (delay, fork) = (outside.delay.take(), std::mem::take(&mut outside.fix_fork));
        if delay.is_some() {
            self.reword(
                "--max-delay",
                Effect::Part,
                "gathered bytes wait no longer; the program's streams are left alone",
            );
        }
        if fork {
            self.library().standard[1].get_or_insert_with(|| "none".into());
            self.plan.hooks = Some("none".into());
            let text = "standard output holds nothing in the program: its bytes are gathered at once, and out at a fork";
            self.reword("--fix-fork", Effect::StandIn, text);
        }
    }

    /// What is said of a wish is said otherwise, where it came true.
    fn reword(&mut self, wish: &str, effect: Effect, text: &str) {
        let done = |row: &&mut PlanRow| row.wish.starts_with(wish) && row.technique == Technique::Outside;
        for row in self.plan.rows.iter_mut().filter(done) {
            (row.effect, row.technique, row.text) = (effect, Technique::Library, text.into());
        }
    }

    fn rescue(&mut self) {
        let wish = "--rescue";
        if let Some(why) = self.unfollowed() {
            return self.row(PlanRow::not(wish, format!("{why}: nobody is there when it dies")));
        }
        self.outside().rescue = true;
        self.library().exec_flush = true;
        match self.plan.runtime.rescue {
            RuntimeFix::Outside => {
                self.follow(wish, "what waits when it dies is written to where it was meant for", None)
            }
            RuntimeFix::OutsidePart(not) => {
                self.follow(wish, "what waits when it dies is written to where it was meant for", Some(not));
            }
            other => {
                if matches!(other, RuntimeFix::HookStandsIn(_)) {
                    self.plan.hooks.get_or_insert_with(|| "delay:0.01".into());
                }
                self.apply(wish, other);
            }
        }
    }

    fn fix_fork(&mut self) {
        let wish = "--fix-fork";
        if self.unfollowed().is_none() {
            self.outside().fix_fork = true;
        }
        let text = "what waits at a fork is written then, and by neither process again";
        match (self.plan.runtime.fork, self.unfollowed()) {
            (RuntimeFix::Outside, None) => self.follow(wish, text, None),
            (RuntimeFix::OutsidePart(not), None) => self.follow(wish, text, Some(not)),
            (RuntimeFix::Outside | RuntimeFix::OutsidePart(_), Some(why)) => {
                self.row(PlanRow::not(wish, why))
            }
            (other, _) => self.apply(wish, other),
        }
    }

    fn fix_order(&mut self) {
        let wish = "--fix-order";
        self.library().order = true;
        match (self.plan.runtime.order, self.unloaded()) {
            (RuntimeFix::Library, None) => {
                let text = "a stream is flushed before a write(2) to its descriptor";
                self.row(PlanRow::whole(wish, Technique::Library, text));
            }
            (RuntimeFix::Library, Some(why)) => self.row(PlanRow::not(wish, why)),
            (RuntimeFix::Hook(text), _) => {
                // By lines is not enough: a write(2) may come in the middle of one.
                self.plan.hooks = Some("none".into());
                self.apply(wish, RuntimeFix::Hook(text));
            }
            (other, _) => self.apply(wish, other),
        }
    }

    fn private_stdin(&mut self) {
        let wish = "--private-stdin";
        let Some((device, inode)) = self.around.input else {
            let text = "standard input is closed: there is nothing to take";
            return self.row(PlanRow::whole(wish, Technique::Nothing, text).but(Effect::Already));
        };
        self.library().private_stdin = Some((device, inode));
        let text = "programs that it starts find the end of the file on standard input";
        let row = PlanRow::whole(wish, Technique::Library, text);
        let row = match self.unloaded() {
            None => row,
            Some(why) => {
                let text = format!("{text}, where they are linked dynamically ({why})");
                PlanRow { text, ..row }.but(Effect::Part)
            }
        };
        self.row(row);
    }
}

/// As it is typed.
fn humantime(delay: Duration) -> String {
    format_seconds(delay.as_secs_f64()).replace(' ', "")
}
