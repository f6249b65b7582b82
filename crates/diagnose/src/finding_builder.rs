//! Builds a finding step by step.

use std::collections::BTreeMap;

use weir_model::trace::{CallSite, StreamCounts};
use weir_model::{Finding, Gain, Severity, Untrusted};

use crate::context::RuleContext;
use crate::rule::Rule;
use crate::sampled_calls::SampledSite;
use crate::text::call_site_sentence;

/// A finding under construction. [`Self::build`] completes it.
///
/// The second part is the sentence about the call site, if it is known.
pub(crate) struct FindingBuilder(Finding, Option<String>);

impl RuleContext<'_> {
    /// Begins a finding of a rule about a descriptor. The path is that of the open file, if it is known.
    pub fn finding(
        &self,
        rule: &Rule,
        severity: Severity,
        pid: u32,
        fd: i32,
        file: Option<u32>,
    ) -> FindingBuilder {
        let path = file.and_then(|id| self.file(id)).map(|file| file.path.clone()).unwrap_or_default();
        let finding = Finding {
            id: rule.finding_id(),
            severity,
            pid,
            fd,
            path,
            evidence: BTreeMap::new(),
            why: String::new(),
            fix: String::new(),
            command: None,
            gain: None,
            command_gain: None,
            wrote: None,
        };
        FindingBuilder(finding, None)
    }

    /// Returns the name of a process for a sentence, as in `cat (42)`.
    pub fn name(&self, pid: u32) -> String {
        process_name(self.process(pid).map(|process| process.comm()), pid)
    }

    /// Returns the name of the program that made the calls of a stream.
    pub fn stream_name(&self, stream: &StreamCounts) -> String {
        let image = self.recording.image(stream.pid, stream.image);
        image.map_or_else(|| self.name(stream.pid), |image| process_name(Some(&image.comm), stream.pid))
    }

    /// Returns the name of a process as it was at a time: execve(2) changes it.
    pub fn name_at(&self, pid: u32, at_s: f64) -> String {
        process_name(self.image_at(pid, at_s).map(|(_, image)| &image.comm), pid)
    }
}

fn process_name(comm: Option<&Untrusted>, pid: u32) -> String {
    match comm {
        Some(comm) if !comm.is_empty() => format!("{comm} ({pid})"),
        _ => format!("process {pid}"),
    }
}

impl FindingBuilder {
    /// Adds a figure to the evidence. JSON has no infinity and no NaN, so these become 0.
    pub fn figure(mut self, name: &str, value: f64) -> Self {
        self.0.evidence.insert(name.into(), if value.is_finite() { value } else { 0.0 });
        self
    }

    /// Adds a count to the evidence.
    pub fn count(self, name: &str, value: u64) -> Self {
        self.figure(name, value as f64)
    }

    /// Sets the gain. A gain that is not a number is left out.
    pub fn gain(mut self, gain: Gain) -> Self {
        if gain.elapsed_s.is_finite() {
            self.0.gain = Some(gain);
        }
        self
    }

    /// Sets what the `weir run` command saves. A gain that is not a number is left out.
    pub fn command_gain(mut self, gain: Option<Gain>) -> Self {
        self.0.command_gain = gain.filter(|gain| gain.elapsed_s.is_finite());
        self
    }

    /// Replaces the path of the open file.
    pub fn path(mut self, path: &Untrusted) -> Self {
        self.0.path = path.into();
        self
    }

    /// Sets the call site that wrote the bytes that the finding is about.
    pub fn call_site(mut self, call_site: Option<&CallSite>) -> Self {
        self.0.wrote = call_site.cloned();
        self.1 = call_site.and_then(call_site_sentence);
        self
    }

    /// Sets the call site of the small calls that the finding is about.
    pub fn sampled(mut self, samples: Option<SampledSite>) -> Self {
        if let Some(samples) = samples {
            self.0.wrote = Some(samples.call_site.clone());
            self.1 = Some(samples.sentence());
        }
        self
    }

    /// As [`Self::build`], with a `weir run` command before the code. `code` has no full stop.
    pub fn build_with_command(
        mut self,
        why: impl Into<String>,
        command: Option<String>,
        code: impl std::fmt::Display,
    ) -> Finding {
        let fix = match &command {
            Some(command) => format!("{command}   or in code: {code}."),
            None => format!("{code}."),
        };
        self.0.command = command;
        self.build(why, fix)
    }

    /// Completes the finding with its two sentences; the call site, if known, follows the first.
    pub fn build(mut self, why: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.0.why = why.into();
        self.0.why.extend(self.1.map(|sentence| format!(" {sentence}")));
        self.0.fix = fix.into();
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn calls_before_an_execve_are_those_of_the_program_before_it() {
        let mut builder = recording(1.0);
        builder.root().system_s = 0.9;
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 500_000, 17);
        assert!(builder.finding("tiny-writes").why.starts_with("prog (1) wrote"));
        builder.exec(0.99, 1, "true");
        let why = builder.finding("tiny-writes").why;
        assert!(why.starts_with("prog (1) wrote"), "{why}");
    }
}
