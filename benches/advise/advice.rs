//! An answer of `weir advise`: its choices and prices.

use std::process::Command;

use serde_json::Value;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::questions::Question;
use crate::targets::built::weir;

/// The document of `weir advise --json`.
pub struct Advice(Value);

impl Advice {
    /// Asks the question in the directory of the benchmark. The prices of syncs are measured anew unless a buffer may be lost;
    /// with `recalibrate` all prices are.
    pub fn ask(bench: &BenchDir, question: &Question, recalibrate: bool) -> Result<Self, BoxError> {
        let mut command = Command::new(weir());
        command.args(["advise", "-y", "--json", "-", "--loss", question.loss, "--latency", question.latency]);
        command.args(["--medium", question.medium, "--sharers", &question.sharers.to_string()]);
        command.args(["--record-bytes", &question.record_bytes.to_string()]);
        command.args(["--rate", &question.rate.to_string()]);
        command.arg("--dir").arg(bench.path("")).env("XDG_CACHE_HOME", bench.path("cache"));
        if recalibrate {
            command.arg("--recalibrate");
        }
        let output = command.output()?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        // With status 1 and a document, no way holds all limits on this machine.
        let document: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{}: weir advise: {}: {message}", question.name, output.status))?;
        Ok(Self(document))
    }

    /// Returns the choices that keep all limits, the best first; none if the first does not.
    pub fn holding(&self) -> Vec<&Value> {
        let all = self.0["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let holds = |choice: &&Value| choice["holds"] == true;
        if all.first().is_none_or(|first| !holds(&first)) {
            return Vec::new();
        }
        all.iter().filter(holds).collect()
    }

    /// Returns the predicted nanoseconds of a record in the way of this name.
    pub fn record_ns(&self, name: &str) -> Option<f64> {
        let ways = |list: &str| self.0[list].as_array().map_or(&[][..], Vec::as_slice);
        let mut all = ways("choices").iter().chain(ways("others"));
        all.find(|way| way["name"] == name)?["predicted"]["record_ns"].as_f64()
    }
}
