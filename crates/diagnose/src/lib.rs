//! Events to findings. One file a rule: pure functions of a [`weir_model::trace::Recording`].

mod buffers;
mod call_patterns;
mod context;
mod cost;
mod damage;
mod draft;
mod errors;
mod fix;
mod flags;
mod gathering;
mod groups;
mod language;
mod merge;
mod parallel;
mod passing;
mod peers;
mod pipelines;
mod renames;
mod rule;
mod rules;
mod small_calls;
mod verdict;
mod words;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use parallel::judge_with_streams;
pub use rule::{GainKind, MergeKey, Rule, SeverityRule, Supersedes, VerdictForm};
pub use rules::rules;
pub use verdict::Verdict;

use weir_model::Finding;
use weir_model::trace::{Pipeline, Recording, StreamTable};

use context::Context;

/// What is concluded from a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Everything that is wrong with the bytes of this run, the worst first: by severity, then by the time lost.
    pub findings: Vec<Finding>,
    /// The same in a sentence or two.
    pub verdict: Verdict,
    /// Who wrote into whom, in the order of the pipelines' first processes.
    pub pipelines: Vec<Pipeline>,
}

/// A recording with its indexes, to be judged by.
pub struct Case<'a>(Context<'a>);

impl<'a> Case<'a> {
    /// The case of the recording whose streams these are. They are asked for by the first rule that wants them, so that
    /// another thread may put them together meanwhile.
    pub fn of(streams: &'a StreamTable<'a>) -> Self {
        Self(Context::new(streams))
    }

    /// Applies the rules.
    pub fn judge(&self) -> Judgement {
        let context = &self.0;
        let found = rules().iter().flat_map(|rule| rule.apply(context)).collect();
        let findings = merge::merge(context, found);
        let verdict = verdict::verdict(context, &findings);
        Judgement { findings, verdict, pipelines: pipelines::pipelines(context) }
    }
}

/// Judges a recording of which nobody else wants anything.
pub fn judge(recording: &Recording) -> Judgement {
    Case::of(&StreamTable::of(recording)).judge()
}
