//! The calls that a solution makes, as weir's own tracer sees them.

use std::fs;

use serde_json::Value;

use super::Wrong;
use super::place::Place;
use super::run::Run;

/// What was traced.
pub(super) struct Calls(Value);

/// The calls on one file in one direction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    pub calls: u64,
    pub bytes: u64,
    /// Calls that forced bytes to the device.
    pub syncs: u64,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

/// Runs it under the tracer.
pub(super) fn traced(place: &Place, run: Run) -> Result<Calls, Wrong> {
    let path = place.beside("trace.json");
    let ended = run.traced(path.clone()).done()?;
    let text = fs::read_to_string(&path).unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(value) => ended.well().map(|_| Calls(value)),
        Err(_) => Err(Wrong::Absent(format!("weir trace does not work here: {}", ended.errors))),
    }
}

impl Calls {
    /// On the file whose path ends so, over all its descriptors.
    pub fn on(&self, name: &str, way: Way) -> Flow {
        let mut flow = Flow::default();
        let direction = if way == Way::In { "in" } else { "out" };
        for stream in self.0["streams"].as_array().into_iter().flatten() {
            let is_it = stream["path"].as_str().is_some_and(|path| path.ends_with(name));
            let number = |field: &str| stream[field].as_u64().unwrap_or(0);
            if is_it {
                flow.syncs += number("syncs");
            }
            if is_it && stream["direction"] == direction {
                flow.calls += number("calls");
                flow.bytes += number("bytes");
            }
        }
        flow
    }
}
