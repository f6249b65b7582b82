//! Derives findings from a recording. Each file in rules/ is one rule: a pure function of a
//! [`weir_model::trace::Recording`].

mod awk_program;
mod block_option;
mod buffer_name;
mod call_patterns;
mod coalesce;
mod code_fix;
mod compressed;
mod context;
mod cost;
mod dialogue;
mod error_handling;
mod finding_builder;
mod flags;
mod full_streams;
mod grouped;
mod inherited_bytes;
mod language;
mod merge;
mod parallel;
mod pass_through;
mod peers;
mod pending_bytes;
mod pending_now;
mod pieced_lines;
mod pipelines;
mod power_cut;
mod private_files;
mod renames;
mod rule;
mod rules;
mod run_advice;
mod sampled_calls;
mod small_calls;
mod split_lines;
mod text;
mod tool_options;
mod unattributed_calls;
mod unused_input;
mod verdict;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use coalesce::{SESSION_CALLS, SESSION_WARMUP};
pub use code_fix::{CodeFix, CodeText, StreamObject, code_fix, logger_flush};
pub use parallel::diagnose_with_streams;
pub use rule::{GainKind, MergeKey, Rule, SeverityRule, Supersedes, VerdictForm};
pub use rules::rules;
pub use run_advice::{PlannedRun, RunOption, RunPlanner, RunProposal};
pub use verdict::RunVerdict;

use weir_model::Finding;
use weir_model::trace::{Pipeline, Recording, StreamTable};

use context::RuleContext;

/// The result of all rules for a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Every finding, the worst first: by severity, then by the time lost.
    pub findings: Vec<Finding>,
    /// A summary in one or two sentences, with the command that fixes the worst finding.
    pub verdict: RunVerdict,
    /// The processes that pipes connect, in the order of the pipelines' first processes.
    pub pipelines: Vec<Pipeline>,
}

/// A recording with the indexes that the rules need.
pub struct IndexedRecording<'a>(RuleContext<'a>);

impl<'a> IndexedRecording<'a> {
    /// Indexes a recording. The streams are merged when the first rule asks for them, unless another thread has done so.
    /// Findings offer the `weir run` commands that `planner` accepts.
    pub fn new(streams: &'a StreamTable<'a>, planner: &'a dyn RunPlanner) -> Self {
        Self(RuleContext::new(streams, planner))
    }

    /// Applies all rules and merges their findings.
    pub fn diagnose(&self) -> Diagnosis {
        let context = &self.0;
        let found = rules().iter().flat_map(|rule| rule.apply(context)).collect();
        let findings = merge::merge(context, found);
        let verdict = verdict::verdict(context, &findings);
        let pipelines = pipelines::pipelines(context, &findings);
        Diagnosis { findings, verdict, pipelines }
    }
}

/// Applies all rules to a recording. Callers that need the merged streams as well use [`IndexedRecording`].
pub fn diagnose(recording: &Recording, planner: &dyn RunPlanner) -> Diagnosis {
    IndexedRecording::new(&StreamTable::of(recording), planner).diagnose()
}
