//! A run under `weir trace`: how long it took from outside, and what its JSON says.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bed::Bed;
use crate::targets::built;
use crate::{Failed, process};

/// One run.
pub struct Traced {
    /// Wall-clock seconds of all of it.
    pub whole: f64,
    /// Its document, schema weir-trace/1.
    pub json: Value,
}

/// `weir trace` with these options, whose JSON goes to the bed.
pub fn weir(bed: &Bed, options: &[&str]) -> Command {
    let mut command = Command::new(built::weir());
    command.args(["trace", "--quiet", "--json"]).arg(bed.path("weir.json")).args(options);
    // Prices are measured here, not taken from a day when the machine was busy.
    command.env("XDG_CACHE_HOME", bed.path("cache")).current_dir(bed.path(""));
    command
}

/// Runs it.
pub fn run(bed: &Bed, command: &mut Command) -> Result<Traced, Failed> {
    let whole = process::seconds(command)?;
    Ok(Traced { whole, json: serde_json::from_slice(&std::fs::read(bed.path("weir.json"))?)? })
}

/// tr2u, or another such program, from file to file under weir.
pub fn run_on(
    bed: &Bed,
    options: &[&str],
    program: &str,
    input: &Path,
    output: &Path,
) -> Result<Traced, Failed> {
    let mut command = weir(bed, options);
    command.arg("--").arg(bed.path(program));
    process::redirect(&mut command, input, output)?;
    run(bed, &mut command)
}

impl Traced {
    /// Seconds until the program could start.
    pub fn startup(&self) -> Result<f64, Failed> {
        self.json["overhead"]["startup_s"].as_f64().ok_or_else(|| "the JSON has no startup_s".into())
    }

    /// The run without them.
    pub fn after_startup(&self) -> Result<f64, Failed> {
        Ok(self.whole - self.startup()?)
    }

    /// Seconds from the command's fork to its end, as weir saw them: without weir's own beginning and end.
    pub fn lived(&self) -> Result<f64, Failed> {
        let root = self.json["processes"].as_array().into_iter().flatten().find(|p| p["parent"].is_null());
        let moment = |name: &str| root.and_then(|process| process[name].as_f64());
        match (moment("started_s"), moment("ended_s")) {
            (Some(started), Some(ended)) => Ok(ended - started),
            _ => Err("the JSON does not say when the command ended".into()),
        }
    }

    /// Where the calls were seen.
    pub fn engine(&self) -> &str {
        self.json["engine"].as_str().unwrap_or("?")
    }

    /// Calls of a descriptor in a direction, `in` or `out`.
    pub fn calls(&self, fd: u64, direction: &str) -> u64 {
        let streams = self.json["streams"].as_array().into_iter().flatten();
        streams
            .filter(|stream| stream["fd"] == fd && stream["direction"] == direction)
            .filter_map(|stream| stream["calls"].as_u64())
            .sum()
    }

    /// Seconds that its findings promise, all together.
    pub fn promised(&self) -> f64 {
        let findings = self.json["findings"].as_array().into_iter().flatten();
        findings.filter_map(|finding| finding["gain"]["elapsed_s"].as_f64()).sum()
    }
}
