//! The one place where the command line meets the rules.

use weir_model::Finding;
use weir_model::trace::{Pipeline, Recording};

/// What was concluded from a recording.
pub struct Judged {
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// The same in a sentence or two, one a line.
    pub verdict: String,
    /// Who wrote into whom.
    pub pipelines: Vec<Pipeline>,
}

/// Applies the rules.
pub fn judge(recording: &Recording) -> Judged {
    let findings = weir_diagnose::diagnose(recording);
    let verdict = weir_diagnose::verdict(recording, &findings).to_string();
    Judged { findings, verdict, pipelines: weir_diagnose::pipelines(recording) }
}
