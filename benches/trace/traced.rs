//! A run under `weir trace`: its wall-clock time and its document.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bench_dir::BenchDir;
use crate::targets::built;
use crate::{BoxError, process};

/// The result of one run.
pub struct Traced {
    /// Wall-clock seconds of the whole run.
    pub whole: f64,
    /// The document, schema weir-trace/1.
    pub json: Value,
}

/// Returns the command `weir trace OPTIONS…`, which writes its JSON to the benchmark's directory.
pub fn weir(bench: &BenchDir, options: &[&str]) -> Command {
    let mut command = Command::new(built::weir());
    command.args(["trace", "--quiet", "--json"]).arg(bench.path("weir.json")).args(options);
    // A cache of its own, so that the prices of calls are measured now, not taken from an earlier day.
    command.env("XDG_CACHE_HOME", bench.path("cache")).current_dir(bench.path(""));
    command
}

/// Runs the command and reads its document.
pub fn run(bench: &BenchDir, command: &mut Command) -> Result<Traced, BoxError> {
    let whole = process::seconds(command)?;
    Ok(Traced { whole, json: serde_json::from_slice(&std::fs::read(bench.path("weir.json"))?)? })
}

/// Runs a program such as tr2u under weir, from file to file.
pub fn run_on(
    bench: &BenchDir,
    options: &[&str],
    program: &str,
    input: &Path,
    output: &Path,
) -> Result<Traced, BoxError> {
    let mut command = weir(bench, options);
    command.arg("--").arg(bench.path(program));
    process::redirect(&mut command, input, output)?;
    run(bench, &mut command)
}

impl Traced {
    /// Returns the seconds until the program could start.
    pub fn startup(&self) -> Result<f64, BoxError> {
        self.json["overhead"]["startup_s"].as_f64().ok_or_else(|| "the JSON has no startup_s".into())
    }

    /// Returns the seconds of the run after start-up.
    pub fn after_startup(&self) -> Result<f64, BoxError> {
        Ok(self.whole - self.startup()?)
    }

    /// Returns the seconds from the command's fork to its exit by weir's clock, without weir's own start and end.
    pub fn command_time(&self) -> Result<f64, BoxError> {
        let root = self.json["processes"].as_array().into_iter().flatten().find(|p| p["parent"].is_null());
        let moment = |name: &str| root.and_then(|process| process[name].as_f64());
        match (moment("started_s"), moment("ended_s")) {
            (Some(started), Some(ended)) => Ok(ended - started),
            _ => Err("the JSON does not say when the command ended".into()),
        }
    }

    /// Returns the engine that recorded the calls.
    pub fn engine(&self) -> &str {
        self.json["engine"].as_str().unwrap_or("?")
    }

    /// Returns the calls of a descriptor in a direction, `in` or `out`.
    pub fn calls(&self, fd: u64, direction: &str) -> u64 {
        let streams = self.json["streams"].as_array().into_iter().flatten();
        streams
            .filter(|stream| stream["fd"] == fd && stream["direction"] == direction)
            .filter_map(|stream| stream["calls"].as_u64())
            .sum()
    }

    /// Returns the sum of the gains of the findings, in seconds.
    pub fn predicted_gain(&self) -> f64 {
        let findings = self.json["findings"].as_array().into_iter().flatten();
        findings.filter_map(|finding| finding["gain"]["elapsed_s"].as_f64()).sum()
    }
}
