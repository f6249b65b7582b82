//! Turns a recorded run into steps: the contents of each buffer, pipe and file between two calls.

mod events;
mod file_contents;
mod sentences;
mod step_recorder;
mod streams;
#[cfg(test)]
mod tests;

use weir_model::lab::step::LabStep;
use weir_model::trace::Recording;

/// Largest number of steps of a run. A longer run is cut, and the last step says so.
const MAX_STEPS: usize = 2_000;

/// Returns the steps of a recording.
pub fn steps(recording: &Recording) -> Vec<LabStep> {
    step_recorder::StepRecorder::new(recording).steps()
}
