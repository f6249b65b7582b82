//! Prints what a copy reports: copied files to standard output, everything else to standard error.

use std::io::{BufRead, Write, stdin};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use indicatif::ProgressBar;
use weir_copier::{ContentResult, CopyError, CopyMethod, CopyReporter, Fallback, TrialResult, quote};
use weir_model::Size;
use weir_model::duration::format_seconds;
use weir_sys::file_system::is_terminal;

use super::Args;
use super::events::{EventLog, hex};
use crate::console::{print_bytes, stdout_error};

/// The reporter of the command line.
pub struct TerminalReporter {
    events: Arc<EventLog>,
    /// The bar is hidden while a line is printed.
    bar: Option<ProgressBar>,
    /// `--debug`: each file's method is printed.
    explains: bool,
    /// A change of the method is printed.
    says_fallbacks: bool,
    quiet: bool,
    /// Why a line of `--verbose` could not be written.
    failure: Mutex<Option<std::io::Error>>,
}

impl TerminalReporter {
    pub fn new(events: &Arc<EventLog>, bar: Option<ProgressBar>, args: &Args) -> Self {
        let explains = args.cp.debug;
        Self {
            events: Arc::clone(events),
            bar,
            explains,
            // A method that was chosen by its name, and is not used, is worth a line without --verbose.
            says_fallbacks: explains
                || args.cp.verbose
                || (args.how.method != CopyMethod::Auto && !args.output.is_quiet()),
            quiet: args.output.is_quiet(),
            failure: Mutex::default(),
        }
    }

    /// Returns why a line of `--verbose` could not be written.
    pub fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.as_ref().map(stdout_error)
    }

    fn print(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn say(&self, text: &str) {
        self.print(|| eprintln_lossy!("weir copy: {text}"));
    }
}

impl CopyReporter for TerminalReporter {
    fn copied(&self, source: &Path, target: &Path, backup: Option<&Path>) {
        let name = |path: &Path| quote(path.as_os_str().as_bytes());
        let mut line = format!("{} -> {}", name(source), name(target));
        if let Some(backup) = backup {
            line.push_str(&format!(" (backup: {})", name(backup)));
        }
        line.push('\n');
        let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if failure.is_none() {
            self.print(|| *failure = print_bytes(line.as_bytes()).err());
        }
    }

    fn content(&self, source: &Path, target: &Path, result: &ContentResult) {
        self.events.content(source, target, result);
        let name = quote(target.as_os_str().as_bytes());
        if self.explains {
            let holes = if result.hole_bytes > 0 {
                format!(", {} of holes", Size(result.hole_bytes))
            } else {
                String::new()
            };
            self.say(&format!("{name}: {} by {}{holes}", Size(result.bytes), result.method.name()));
        }
        if let Some(trial) = &result.trial
            && self.explains
        {
            self.say(&format!("{name}: {}", trial_text(trial)));
        }
        for fallback in result.fallbacks.iter().filter(|_| self.says_fallbacks) {
            self.say(&format!("{name}: {}", fallback_text(fallback)));
        }
        if let Some(verified) = result.verified
            && !self.quiet
        {
            let from = match verified.past_cache {
                true => "reread from the device",
                false => "reread, but from memory: its file system keeps the page cache",
            };
            let price = format_seconds(verified.seconds);
            self.say(&format!("{name}: {from}, equal; sha256 {}; took {price}", hex(&verified.sha256)));
        }
    }

    fn note(&self, text: &str) {
        self.events.message("warning", text);
        if !self.quiet {
            self.say(text);
        }
    }

    fn warning(&self, text: &str) {
        self.events.message("warning", text);
        self.say(text);
    }

    fn error(&self, error: &CopyError) {
        let text = error.to_string();
        self.events.message("error", &text);
        self.say(&text);
    }

    fn ask(&self, question: &str) -> bool {
        self.print(|| {
            let _ = write!(std::io::stderr(), "weir copy: {question} ");
        });
        let mut answer = String::new();
        let is_answered = stdin().lock().read_line(&mut answer).is_ok();
        if !is_terminal(stdin()) {
            let _ = writeln!(std::io::stderr());
        }
        is_answered && answer.trim_start().starts_with(['y', 'Y'])
    }

    fn wants_content(&self) -> bool {
        self.explains || self.events.is_open()
    }
}

/// Returns what `auto` measured as a sentence.
fn trial_text(trial: &TrialResult) -> String {
    let costs = [0, 1].map(|which| {
        let cost = format_seconds(trial.ns_per_mib[which] as f64 / 1e9);
        format!("{} took {cost}", trial.methods[which].name())
    });
    let what = if trial.by_cpu { "of CPU time for each MiB" } else { "for each MiB of a cold file" };
    format!("at its beginning {} and {} {what}", costs[0], costs[1])
}

/// Returns a change of the method as a sentence.
pub fn fallback_text(fallback: &Fallback) -> String {
    let reason = match fallback.errno {
        Some(errno) => weir_sys::errno_text(&errno.into()),
        None => "it ended before the file".into(),
    };
    let Fallback { from, to, offset, call, .. } = fallback;
    format!("{} refused at byte {offset} ({call}: {reason}); {} continued there", from.name(), to.name())
}
