//! The one place where the command line meets the rules.

use weir_model::Finding;
use weir_model::trace::Recording;
use weir_report::trace::Pipeline;

/// What was concluded from a recording.
pub struct Judged {
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// The same in a sentence or two, one a line; empty: nothing is wrong.
    pub verdict: String,
    /// Who wrote into whom.
    pub pipelines: Vec<Pipeline>,
}

/// Applies the rules.
pub fn judge(_recording: &Recording) -> Judged {
    Judged { findings: Vec::new(), verdict: String::new(), pipelines: Vec::new() }
}
