//! Puts a finding together.

use std::collections::BTreeMap;

use weir_model::trace::{CallSite, Image};
use weir_model::{Finding, Gain, Severity};

use crate::context::Context;
use crate::fix::{Topic, code};
use crate::rule::Rule;
use crate::words::{quoted, written_by};

/// A finding that is being written.
pub(crate) struct Draft(Finding);

impl Context<'_> {
    pub fn draft(&self, rule: &Rule, severity: Severity, pid: u32, fd: i32, file: Option<u32>) -> Draft {
        let path = file.and_then(|id| self.file(id)).map_or(String::new(), |file| file.path.clone());
        let (evidence, why, fix, gain, wrote) = (BTreeMap::new(), String::new(), String::new(), None, None);
        Draft(Finding { id: rule.finding_id(), severity, pid, fd, path, evidence, why, fix, gain, wrote })
    }

    /// The command that runs this process's program again under `weir run` with these options.
    pub fn weir_run(&self, options: &str, pid: u32) -> String {
        format!("weir run {options} -- {}", self.command(pid))
    }

    /// The same for the command that was traced, with all that it starts.
    pub fn weir_run_whole(&self, options: &str) -> String {
        format!("weir run {options} -- {}", line(&self.recording.command))
    }

    /// The same for what the process ran at a time.
    pub fn weir_run_at(&self, options: &str, pid: u32, at_s: f64) -> String {
        format!(
            "weir run {options} -- {}",
            self.command_of(self.image_at(pid, at_s).map(|(_, image)| image), pid)
        )
    }

    /// A process's command as a shell would take it.
    pub fn command(&self, pid: u32) -> String {
        self.command_of(self.process(pid).and_then(|process| process.images.last()), pid)
    }

    fn command_of(&self, image: Option<&Image>, pid: u32) -> String {
        let argv = image.map(|image| image.argv.as_slice()).filter(|argv| !argv.is_empty());
        let argv = match argv {
            Some(argv) => argv,
            None if pid == self.recording.root && !self.recording.command.is_empty() => {
                &self.recording.command
            }
            None => return image.map_or("COMMAND".into(), |image| quoted(&image.comm)),
        };
        line(argv)
    }

    /// The cure as code in the language of what the process ran at that time.
    pub fn code(&self, pid: u32, at_s: f64, topic: Topic) -> String {
        code(self.language(pid, at_s), topic)
    }

    /// What a process is called in a sentence.
    pub fn name(&self, pid: u32) -> String {
        called(self.process(pid).map(|process| process.comm()), pid)
    }

    /// The same by what it ran at a time: before an execve(2) it was another program.
    pub fn name_at(&self, pid: u32, at_s: f64) -> String {
        called(self.image_at(pid, at_s).map(|(_, image)| image.comm.as_str()), pid)
    }
}

/// Words as a shell would take them.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn called(comm: Option<&str>, pid: u32) -> String {
    match comm {
        Some(comm) if !comm.is_empty() => format!("{comm} ({pid})"),
        _ => format!("process {pid}"),
    }
}

impl Draft {
    pub fn figure(mut self, name: &str, value: f64) -> Self {
        self.0.evidence.insert(name.into(), if value.is_finite() { value } else { 0.0 });
        self
    }

    pub fn count(self, name: &str, value: u64) -> Self {
        self.figure(name, value as f64)
    }

    pub fn gain(mut self, gain: Gain) -> Self {
        if gain.elapsed_s.is_finite() {
            self.0.gain = Some(gain);
        }
        self
    }

    pub fn at_path(mut self, path: &str) -> Self {
        self.0.path = path.into();
        self
    }

    /// Where what is told of was written, if that is known.
    pub fn wrote(mut self, place: Option<&CallSite>) -> Self {
        self.0.wrote = place.cloned();
        self
    }

    pub fn say(mut self, why: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.0.why = why.into();
        let place = self.0.wrote.as_ref().and_then(written_by);
        self.0.why.extend(place.map(|sentence| format!(" {sentence}")));
        self.0.fix = fix.into();
        self.0
    }
}
