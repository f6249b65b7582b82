//! The system calls of a solution, observed by `weir trace`.

use std::fs;

use serde_json::Value;

use super::CheckFailure;
use super::check_directory::CheckDirectory;
use super::run::SolutionRun;

/// The document that `weir trace --json` wrote for one run.
pub(super) struct TracedCalls(Value);

/// The calls on one file in one direction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileCalls {
    pub calls: u64,
    pub bytes: u64,
    /// Calls that forced bytes to the device.
    pub syncs: u64,
}

/// The direction of the bytes, as seen from the solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallDirection {
    In,
    Out,
}

/// Runs the solution under `weir trace`. Fails if the solution fails, or if tracing does not work on this machine.
pub(super) fn traced(dir: &CheckDirectory, run: SolutionRun) -> Result<TracedCalls, CheckFailure> {
    let path = dir.beside("trace.json");
    let ended = run.traced(path.clone()).done()?;
    let text = fs::read_to_string(&path).unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(value) => ended.well().map(|_| TracedCalls(value)),
        Err(_) => Err(CheckFailure::Absent(format!("weir trace does not work here: {}", ended.errors))),
    }
}

impl TracedCalls {
    /// Returns the calls on the file whose path ends with `name`, summed over its descriptors.
    pub fn on(&self, name: &str, direction: CallDirection) -> FileCalls {
        let mut sum = FileCalls::default();
        let direction = if direction == CallDirection::In { "in" } else { "out" };
        for stream in self.0["streams"].as_array().into_iter().flatten() {
            let is_file = stream["path"].as_str().is_some_and(|path| path.ends_with(name));
            let number = |field: &str| stream[field].as_u64().unwrap_or(0);
            if is_file {
                sum.syncs += number("syncs");
            }
            if is_file && stream["direction"] == direction {
                sum.calls += number("calls");
                sum.bytes += number("bytes");
            }
        }
        sum
    }
}
