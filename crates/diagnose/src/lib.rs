//! Events to findings. One file a rule: pure functions of a [`weir_model::trace::Recording`].

mod buffers;
mod context;
mod cost;
mod damage;
mod draft;
mod errors;
mod fix;
mod flags;
mod language;
mod merge;
mod passing;
mod peers;
mod pipelines;
mod renames;
mod rules;
mod verdict;
mod words;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use pipelines::pipelines;
pub use verdict::{Verdict, verdict};

use weir_model::Finding;
use weir_model::trace::Recording;

use context::Context;

/// Everything that is wrong with the bytes of this run, the worst first: by severity, then by the time lost.
pub fn diagnose(recording: &Recording) -> Vec<Finding> {
    let context = Context::new(recording);
    let found = rules::ALL.iter().flat_map(|rule| rule.apply(&context)).collect();
    merge::merge(&context, found)
}
