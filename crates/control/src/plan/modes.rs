//! Modes of streams: --stdin, --stdout, --stderr, --file.

use super::PlanBuilder;
use crate::plan::request::{BufferMode, StandardStream};
use crate::plan::rows::{Effect, PlanRow, Technique};
use crate::runtimes::RuntimeFix;

impl PlanBuilder<'_> {
    pub(super) fn modes(&mut self) {
        for stream in [StandardStream::Input, StandardStream::Output, StandardStream::Error] {
            if let Some(mode) = self.request.mode(stream) {
                self.mode(stream, mode);
            }
        }
        for (glob, mode) in &self.request.files {
            self.file(glob, *mode);
        }
        if self.request.force && self.plan.library.is_some() {
            self.library().force = true;
            let text = "setvbuf and its like in the program change nothing";
            self.row(PlanRow::whole("--force", Technique::Library, text));
        }
    }

    fn mode(&mut self, stream: StandardStream, mode: BufferMode) {
        let wish = format!("--{} {mode}", stream.name());
        // Children are reached as well, whatever the program itself is.
        self.library().standard[stream as usize] = Some(mode.to_string());
        match stream {
            StandardStream::Output => self.output(&wish, mode),
            StandardStream::Input => self.input(&wish, mode),
            StandardStream::Error => self.error(&wish, mode),
        }
    }

    fn output(&mut self, wish: &str, mode: BufferMode) {
        let runtime = self.plan.runtime;
        let remedy = match mode {
            BufferMode::None => runtime.none,
            BufferMode::Line => runtime.line,
            BufferMode::Full(_) => runtime.full,
        };
        self.hook_children(mode);
        match remedy {
            RuntimeFix::Library => self.by_library(wish, StandardStream::Output, mode),
            RuntimeFix::Outside | RuntimeFix::OutsidePart(_) => {
                let why = format!("{} cannot be told from outside to write at once", runtime.name);
                self.briefly(wish, &why);
            }
            other => self.apply(wish, other),
        }
    }

    /// setvbuf by the library, or what stands in where it does not get in.
    fn by_library(&mut self, wish: &str, stream: StandardStream, mode: BufferMode) {
        match (self.unloaded(), mode) {
            (None, _) => {
                let text = format!("setvbuf on {} before main, in its children too", stream.name());
                self.row(PlanRow::whole(wish, Technique::Library, text));
            }
            (Some(why), BufferMode::Full(_)) => self.row(PlanRow::not(wish, why)),
            (Some(why), _) => self.briefly(wish, why),
        }
    }

    /// What waits is brought out so often that it makes no difference to who looks.
    pub(super) fn briefly(&mut self, wish: &str, why: &str) {
        match self.unfollowed() {
            None => {
                self.delay(super::STAND_IN_DELAY);
                let text = format!("{why}: what waits longer than 10 ms is brought out from outside");
                self.row(PlanRow::whole(wish, Technique::Outside, text).but(Effect::StandIn));
            }
            Some(also) => self.terminal(wish, &both(why, &also)),
        }
    }

    fn input(&mut self, wish: &str, mode: BufferMode) {
        match (self.plan.runtime.others, self.unloaded()) {
            (RuntimeFix::Library, None) => self.by_library(wish, StandardStream::Input, mode),
            (RuntimeFix::Library, Some(why)) => self.row(PlanRow::not(wish, why)),
            (other, _) => self.apply(wish, other),
        }
    }

    fn error(&mut self, wish: &str, mode: BufferMode) {
        match (self.plan.runtime.others, self.unloaded(), mode) {
            (RuntimeFix::Library, None, _) => self.by_library(wish, StandardStream::Error, mode),
            (_, Some(why), BufferMode::Full(_)) => self.row(PlanRow::not(wish, why)),
            (other, _, BufferMode::Full(_)) => self.apply(wish, other),
            _ => {
                let text = "it writes standard error at once, or line by line";
                self.row(PlanRow::whole(wish, Technique::Nothing, text).but(Effect::Already));
            }
        }
    }

    fn file(&mut self, glob: &str, mode: BufferMode) {
        let wish = format!("--file {glob}={mode}");
        self.library().files.push((glob.into(), mode.to_string()));
        match (self.plan.runtime.others, self.unloaded()) {
            (RuntimeFix::Library, None) => {
                let text = "setvbuf on what fopen, fdopen and freopen give for such a name";
                self.row(PlanRow::whole(&wish, Technique::Library, text));
            }
            (RuntimeFix::Library, Some(why)) => self.row(PlanRow::not(&wish, why)),
            (other, _) => self.apply(&wish, other),
        }
    }

    /// Programs that are started by this one may be of any runtime that takes hooks.
    fn hook_children(&mut self, mode: BufferMode) {
        self.plan.hooks = Some(match mode {
            BufferMode::None => "none".into(),
            BufferMode::Line => "line".into(),
            BufferMode::Full(None) => "full".into(),
            BufferMode::Full(Some(size)) => format!("full:{}", size.0),
        });
        match mode {
            BufferMode::None => self.plan.variables.push(("PYTHONUNBUFFERED", "1")),
            BufferMode::Full(_) => self.plan.variables.push(("PYTHONUNBUFFERED", "")),
            BufferMode::Line => {}
        }
    }
}

/// Two reasons in one; they may be the same.
fn both(why: &str, also: &str) -> String {
    if why == also { why.into() } else { format!("{why}, and {also}") }
}
