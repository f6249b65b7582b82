//! A choice of `weir advise` as a program that is run and timed.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::questions::Question;
use crate::targets::built::weir;

/// Predicted duration of a sample.
const SAMPLE_NS: f64 = 0.2e9;
/// Bytes of a sample at most, and at least, if the time allows: less than what the kernel accepts without writing back.
const MOST_BYTES: u64 = 200 << 20;

/// One of the three choices, compiled with the driver.
pub struct Contender {
    pub name: String,
    pub predicted_ns: f64,
    program: PathBuf,
    /// Records in an interval of the timer; 0 without one.
    tick_every: u64,
}

/// Asks the question, and compiles the programs of the answer. Returns none if no way holds the limits on this machine.
pub fn contenders(
    bench: &BenchDir,
    question: &Question,
    recalibrate: bool,
) -> Result<Vec<Contender>, BoxError> {
    let mut command = Command::new(weir());
    command.args(["advise", "-y", "--json", "-", "--loss", question.loss, "--latency", question.latency]);
    command.args(["--medium", question.medium, "--sharers", &question.sharers.to_string()]);
    command.args([
        "--record-bytes",
        &question.record_bytes.to_string(),
        "--rate",
        &question.rate.to_string(),
    ]);
    command.arg("--dir").arg(bench.path("")).env("XDG_CACHE_HOME", bench.path("cache"));
    if recalibrate {
        command.arg("--recalibrate");
    }
    let output = command.output()?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    // With status 1 and a document, no way holds all limits on this machine.
    let document: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("{}: weir advise: {}: {message}", question.name, output.status))?;
    if document["choices"][0]["holds"] != true {
        return Ok(Vec::new());
    }
    let choices = document["choices"].as_array().ok_or("no choices")?;
    let holding = choices.iter().filter(|choice| choice["holds"] == true).enumerate();
    holding.map(|(number, choice)| contender(bench, question, number, choice)).collect()
}

fn contender(
    bench: &BenchDir,
    question: &Question,
    number: usize,
    choice: &Value,
) -> Result<Contender, BoxError> {
    let is_libweir = choice["method"] == "libweir";
    let code = choice["code"][if is_libweir { "c-libweir" } else { "c" }].as_str().ok_or("no program")?;
    let source = bench.path(&format!("choice{number}.c"));
    let program = bench.path(&format!("choice{number}"));
    std::fs::write(&source, code)?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command.args(["-O2", "-pthread", "-I"]).arg(root.join("libweir/include"));
    command.arg(format!("-DCHOICE=\"{}\"", source.display()));
    if code.contains("static int sync_log(void)") {
        command.arg("-DHAS_TICK");
    }
    command.arg("-o").arg(&program).arg(root.join("benches/advise/programs/driver.c"));
    if is_libweir {
        command.arg(root.join("target/libweir/libweir.a"));
    }
    let built = command.status()?;
    if !built.success() {
        return Err(format!("{command:?}: {built}").into());
    }
    let period = ["sync_period_s", "flush_period_s"].iter().find_map(|name| choice[name].as_f64());
    Ok(Contender {
        name: choice["name"].as_str().ok_or("no name")?.into(),
        predicted_ns: choice["predicted"]["record_ns"].as_f64().ok_or("no price")?,
        program,
        tick_every: period.map_or(0, |period| (question.rate * period).round().max(1.0) as u64),
    })
}

impl Contender {
    /// Runs a sample and returns the nanoseconds of a record.
    pub fn record_ns(&self, bench: &BenchDir, question: &Question) -> Result<f64, BoxError> {
        let records = self.records(question);
        let out = bench.path("out");
        let output = Command::new(&self.program)
            .arg(&out)
            .args(
                [records, question.record_bytes, self.tick_every.max(1), u64::from(question.sharers)]
                    .map(|n| n.to_string()),
            )
            .output()?;
        let bytes = std::fs::metadata(&out)?.len();
        std::fs::remove_file(&out)?;
        if !output.status.success() || bytes != records * question.record_bytes {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: {}, {bytes} bytes: {message}", self.name, output.status).into());
        }
        let ns: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
        Ok(ns / records as f64)
    }

    /// Returns the records of a sample: whole intervals of the timer, the same number for each writer.
    fn records(&self, question: &Question) -> u64 {
        let most = MOST_BYTES / question.record_bytes;
        let wanted = ((SAMPLE_NS / self.predicted_ns) as u64).clamp(50, most);
        let interval = if self.tick_every <= most { self.tick_every.max(1) } else { 1 };
        let writers = u64::from(question.sharers);
        (wanted / interval).max(1) * interval / writers * writers
    }
}
