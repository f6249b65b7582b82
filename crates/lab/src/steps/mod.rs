//! A recorded run, one call at a time: what was in each buffer, pipe and file between two calls.

mod events;
mod file_contents;
mod sentences;
mod step_recorder;
mod streams;
#[cfg(test)]
mod tests;

use weir_model::lab::step::LabStep;
use weir_model::trace::Recording;

/// Steps kept; of a longer run the rest is left out, and the last step says so.
const STEPS_MOST: usize = 2_000;

/// Goes through a recording.
pub fn steps(recording: &Recording) -> Vec<LabStep> {
    step_recorder::StepRecorder::new(recording).steps()
}
