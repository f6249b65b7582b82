//! The options for modes of streams: --stdin, --stdout, --stderr, --file and --force.

use super::request::{BufferMode, StandardStream};
use super::{PlanBuilder, SUBSTITUTE_DELAY};
use crate::preload::MAX_FILES;
use weir_model::run::{Effect, PlanRow, Technique};
use weir_model::{DIRECT_READERS, RuntimeFix, Size};

const READS_DIRECTLY: RuntimeFix =
    RuntimeFix::NoEffect("it reads its input by read(2) into a buffer of its own, not through a stream");

impl PlanBuilder<'_> {
    pub(super) fn add_modes(&mut self) {
        for stream in [StandardStream::Input, StandardStream::Output, StandardStream::Error] {
            if let Some(mode) = self.request.mode(stream) {
                self.add_mode(stream, mode);
            }
        }
        for (glob, mode) in &self.request.files {
            self.add_file(glob, *mode);
        }
        if self.request.force && self.plan.library.is_some() {
            self.library().force = true;
            self.add_force();
        } else if self.request.force {
            let row = PlanRow::honoured("--force", Technique::Nothing, "no mode is given that it could keep");
            self.row(row.with_effect(Effect::Already));
        }
    }

    /// Adds the row of `--force`, which the library honours in programs that it loads into.
    fn add_force(&mut self) {
        let (option, name) = ("--force", self.plan.runtime.facts.name);
        let by_library = matches!(self.plan.runtime.facts.fixes.other_streams, RuntimeFix::Library);
        let from_outside = self.plan.supervision.is_some() || self.plan.terminal;
        let row = match (by_library, self.not_preloadable()) {
            (_, None) => {
                let text = "setvbuf and its like have no effect in the program";
                PlanRow::honoured(option, Technique::Library, text)
            }
            (true, Some(_)) if from_outside => {
                let text = "the bytes are written from outside, whatever mode the program sets";
                PlanRow::honoured(option, Technique::Outside, text)
            }
            (true, Some(why)) => PlanRow::refused(option, why),
            (false, Some(_)) => {
                let text = format!("{name} does not call setvbuf");
                PlanRow::honoured(option, Technique::Nothing, text).with_effect(Effect::Already)
            }
        };
        self.row(row);
    }

    fn add_mode(&mut self, stream: StandardStream, mode: BufferMode) {
        let option = format!("--{} {mode}", stream.name());
        // The library reaches the program's children even if it does not reach the program.
        self.library().standard[stream as usize] = Some(mode.to_string());
        match stream {
            StandardStream::Output => self.add_output(&option, mode),
            StandardStream::Input => self.add_input(&option, mode),
            StandardStream::Error => self.add_error(&option, mode),
        }
    }

    fn add_output(&mut self, option: &str, mode: BufferMode) {
        self.configure_hooks(mode);
        match self.output_fix(mode) {
            RuntimeFix::Library => self.by_library(option, StandardStream::Output, mode),
            RuntimeFix::Outside => {
                let name = self.plan.runtime.facts.name;
                let why = format!("{name}'s buffer cannot be turned off from outside");
                self.short_delay_substitute(option, &why);
            }
            // The runtime's own stream needs nothing, but the program has others.
            RuntimeFix::NotNeeded(why) if self.drained_buffers(option).is_some() => {
                self.row_with_drained_buffers(PlanRow::honoured(option, Technique::Outside, why), mode);
            }
            other => {
                let before = self.plan.rows.len();
                self.apply(option, other);
                if matches!(mode, BufferMode::Full(Some(_))) {
                    self.note_fixed_size(before, other);
                }
            }
        }
    }

    /// Notes in the rows from `first` on that the runtime's own buffer has another size than the one asked for.
    fn note_fixed_size(&mut self, first: usize, fix: RuntimeFix) {
        if matches!(fix, RuntimeFix::Environment { .. } | RuntimeFix::NotNeeded(_)) {
            let name = self.plan.runtime.facts.name;
            for row in &mut self.plan.rows[first..] {
                row.effect = Effect::Part;
                row.text += &format!("; weir cannot change the size of {name}'s buffer");
            }
        }
    }

    fn output_fix(&self, mode: BufferMode) -> RuntimeFix {
        let fixes = &self.plan.runtime.facts.fixes;
        let fix = match mode {
            BufferMode::None => fixes.unbuffered,
            BufferMode::Line => fixes.line_buffered,
            BufferMode::Full(_) => fixes.fully_buffered,
        };
        self.unless_forced(fix)
    }

    /// Returns the fix that holds with the request's `--force`, or without it.
    fn unless_forced(&self, fix: RuntimeFix) -> RuntimeFix {
        if matches!(fix, RuntimeFix::IfForced(_)) && self.request.force { RuntimeFix::Library } else { fix }
    }

    /// Lets the library call setvbuf, or adds a substitute if the library cannot be loaded.
    fn by_library(&mut self, option: &str, stream: StandardStream, mode: BufferMode) {
        match (self.not_preloadable(), mode) {
            (None, BufferMode::Full(Some(size))) if !is_allocatable(size) => {
                self.row(PlanRow::refused(option, format!("a buffer of {size} cannot be allocated")));
            }
            (None, _) => {
                let text = format!("setvbuf on {} before main, in its children too", stream.name());
                let row = PlanRow::honoured(option, Technique::Library, text);
                self.row_with_drained_buffers(row, mode);
            }
            (Some(why), BufferMode::Full(_)) => self.row(PlanRow::refused(option, why)),
            (Some(why), _) => self.short_delay_substitute(option, why),
        }
    }

    /// Adds a row of the library. Buffers that only the supervisor reaches are drained soon, for a mode without a full
    /// buffer.
    fn row_with_drained_buffers(&mut self, row: PlanRow, mode: BufferMode) {
        let drained = self.drained_buffers(&row.option).filter(|_| !matches!(mode, BufferMode::Full(_)));
        match drained.filter(|_| self.not_traceable().is_none()) {
            Some(buffers) => {
                self.bound_delay(SUBSTITUTE_DELAY);
                let text = format!("{buffers}: bytes older than 10 ms are written from outside");
                let text = format!("{}; {text}", row.text);
                self.row(PlanRow { text, ..row }.with_effect(Effect::StandIn));
            }
            None => self.row(row),
        }
    }

    /// Drains the streams so often that a reader does not notice the buffer.
    pub(super) fn short_delay_substitute(&mut self, option: &str, why: &str) {
        match self.not_traceable() {
            None => {
                self.bound_delay(SUBSTITUTE_DELAY);
                let text = format!("{why}: bytes older than 10 ms are written from outside");
                self.row(PlanRow::honoured(option, Technique::Outside, text).with_effect(Effect::StandIn));
            }
            Some(also) => self.terminal_substitute(option, &joined_reasons(why, &also)),
        }
    }

    fn add_input(&mut self, option: &str, mode: BufferMode) {
        let name = self.plan.program.names.last();
        let reads_directly = name.is_some_and(|name| DIRECT_READERS.contains(&name.as_str()));
        match (self.plan.runtime.facts.fixes.other_streams, self.not_preloadable()) {
            (RuntimeFix::Library, _) if reads_directly => self.apply(option, READS_DIRECTLY),
            (RuntimeFix::Library, None) => self.by_library(option, StandardStream::Input, mode),
            (RuntimeFix::Library, Some(why)) => self.row(PlanRow::refused(option, why)),
            (other, _) => self.apply(option, other),
        }
    }

    fn add_error(&mut self, option: &str, mode: BufferMode) {
        match (self.plan.runtime.facts.fixes.other_streams, self.not_preloadable(), mode) {
            // Only the data of such programs bypass the streams, not their messages.
            (RuntimeFix::Library | RuntimeFix::NoEffect(_) | RuntimeFix::IfForced(_), None, _) => {
                self.by_library(option, StandardStream::Error, mode);
            }
            (_, Some(why), BufferMode::Full(_)) => self.row(PlanRow::refused(option, why)),
            (other, _, BufferMode::Full(_)) => self.apply(option, other),
            _ => {
                let text = "it writes standard error at once, or line by line";
                self.row(PlanRow::honoured(option, Technique::Nothing, text).with_effect(Effect::Already));
            }
        }
    }

    fn add_file(&mut self, glob: &str, mode: BufferMode) {
        let option = format!("--file {glob}={mode}");
        if self.library().files.len() == MAX_FILES {
            let why = format!("weir run takes at most {MAX_FILES} patterns; use wider patterns");
            return self.row(PlanRow::refused(&option, why));
        }
        self.library().files.push((glob.into(), mode.to_string()));
        match (self.unless_forced(self.plan.runtime.facts.fixes.other_streams), self.not_preloadable()) {
            (RuntimeFix::Library, None) => {
                let text = "setvbuf on streams that fopen, fdopen and freopen open on such a name";
                let row = PlanRow::honoured(&option, Technique::Library, text);
                self.row_with_drained_buffers(row, mode);
            }
            (RuntimeFix::Library, Some(why)) => self.row(PlanRow::refused(&option, why)),
            (other, _) => self.apply(&option, other),
        }
    }

    /// Sets the mode of all hooks: the program's children may belong to any runtime.
    pub(super) fn configure_hooks(&mut self, mode: BufferMode) {
        self.plan.hooks = Some(mode.to_string());
        match mode {
            BufferMode::None => self.plan.variables.push(("PYTHONUNBUFFERED", "1")),
            BufferMode::Full(_) => self.plan.variables.push(("PYTHONUNBUFFERED", "")),
            BufferMode::Line => {}
        }
    }
}

/// Returns whether this machine has so much memory for a buffer. No page of it is touched.
fn is_allocatable(size: Size) -> bool {
    usize::try_from(size.0).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}

/// Joins two reasons, which may be the same.
fn joined_reasons(why: &str, also: &str) -> String {
    if why == also { why.into() } else { format!("{why}, and {also}") }
}
