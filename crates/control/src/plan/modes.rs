//! Modes of streams: --stdin, --stdout, --stderr, --file.

use super::Maker;
use crate::plan::request::{Mode, Standard};
use crate::plan::rows::{Effect, Row, Technique};
use crate::runtimes::Remedy;

impl Maker<'_> {
    pub(super) fn modes(&mut self) {
        for stream in [Standard::Input, Standard::Output, Standard::Error] {
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
            self.row(Row::whole("--force", Technique::Library, text));
        }
    }

    fn mode(&mut self, stream: Standard, mode: Mode) {
        let wish = format!("--{} {mode}", stream.name());
        // Children are reached as well, whatever the program itself is.
        self.library().standard[stream as usize] = Some(mode.to_string());
        match stream {
            Standard::Output => self.output(&wish, mode),
            Standard::Input => self.input(&wish, mode),
            Standard::Error => self.error(&wish, mode),
        }
    }

    fn output(&mut self, wish: &str, mode: Mode) {
        let runtime = self.plan.runtime;
        let remedy = match mode {
            Mode::None => runtime.none,
            Mode::Line => runtime.line,
            Mode::Full(_) => runtime.full,
        };
        self.hook_children(mode);
        match remedy {
            Remedy::Library => self.by_library(wish, Standard::Output, mode),
            Remedy::Outside | Remedy::OutsidePart(_) => {
                let why = format!("{} cannot be told from outside to write at once", runtime.name);
                self.briefly(wish, &why);
            }
            other => self.apply(wish, other),
        }
    }

    /// setvbuf by the library, or what stands in where it does not get in.
    fn by_library(&mut self, wish: &str, stream: Standard, mode: Mode) {
        match (self.unloaded(), mode) {
            (None, _) => {
                let text = format!("setvbuf on {} before main, in its children too", stream.name());
                self.row(Row::whole(wish, Technique::Library, text));
            }
            (Some(why), Mode::Full(_)) => self.row(Row::not(wish, why)),
            (Some(why), _) => self.briefly(wish, why),
        }
    }

    /// What waits is brought out so often that it makes no difference to who looks.
    pub(super) fn briefly(&mut self, wish: &str, why: &str) {
        match self.unfollowed() {
            None => {
                self.delay(super::STAND_IN_DELAY);
                let text = format!("{why}: what waits longer than 10 ms is brought out from outside");
                self.row(Row::whole(wish, Technique::Outside, text).but(Effect::StandIn));
            }
            Some(also) => self.terminal(wish, &both(why, &also)),
        }
    }

    fn input(&mut self, wish: &str, mode: Mode) {
        match (self.plan.runtime.others, self.unloaded()) {
            (Remedy::Library, None) => self.by_library(wish, Standard::Input, mode),
            (Remedy::Library, Some(why)) => self.row(Row::not(wish, why)),
            (other, _) => self.apply(wish, other),
        }
    }

    fn error(&mut self, wish: &str, mode: Mode) {
        match (self.plan.runtime.others, self.unloaded(), mode) {
            (Remedy::Library, None, _) => self.by_library(wish, Standard::Error, mode),
            (_, Some(why), Mode::Full(_)) => self.row(Row::not(wish, why)),
            (other, _, Mode::Full(_)) => self.apply(wish, other),
            _ => {
                let text = "it writes standard error at once, or line by line";
                self.row(Row::whole(wish, Technique::Nothing, text).but(Effect::Already));
            }
        }
    }

    fn file(&mut self, glob: &str, mode: Mode) {
        let wish = format!("--file {glob}={mode}");
        self.library().files.push((glob.into(), mode.to_string()));
        match (self.plan.runtime.others, self.unloaded()) {
            (Remedy::Library, None) => {
                let text = "setvbuf on what fopen, fdopen and freopen give for such a name";
                self.row(Row::whole(&wish, Technique::Library, text));
            }
            (Remedy::Library, Some(why)) => self.row(Row::not(&wish, why)),
            (other, _) => self.apply(&wish, other),
        }
    }

    /// Programs that are started by this one may be of any runtime that takes hooks.
    fn hook_children(&mut self, mode: Mode) {
        self.plan.hooks = Some(match mode {
            Mode::None => "none".into(),
            Mode::Line => "line".into(),
            Mode::Full(None) => "full".into(),
            Mode::Full(Some(size)) => format!("full:{}", size.0),
        });
        match mode {
            Mode::None => self.plan.variables.push(("PYTHONUNBUFFERED", "1")),
            Mode::Full(_) => self.plan.variables.push(("PYTHONUNBUFFERED", "")),
            Mode::Line => {}
        }
    }
}

/// Two reasons in one; they may be the same.
fn both(why: &str, also: &str) -> String {
    if why == also { why.into() } else { format!("{why}, and {also}") }
}
