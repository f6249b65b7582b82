//! A choice of `weir advise` as a program that is run and timed.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::BoxError;
use crate::advice::Advice;
use crate::bench_dir::BenchDir;
use crate::questions::Question;

/// Predicted duration of a sample.
const SAMPLE_NS: f64 = 0.2e9;
/// Bytes of a sample at most, and at least, if the time allows: less than what the kernel accepts without writing back.
const MAX_BYTES: u64 = 200 << 20;

/// One of the three choices, compiled with the driver.
pub struct Contender {
    pub name: String,
    /// Whether a record or a timer waits for the device.
    pub syncs: bool,
    /// The prediction from which the number of records follows.
    predicted_ns: f64,
    program: PathBuf,
    /// Records in an interval of the timer; 0 without one.
    tick_every: u64,
}

/// Compiles the programs of the choices that keep all limits.
pub fn contenders(
    bench: &BenchDir,
    question: &Question,
    advice: &Advice,
) -> Result<Vec<Contender>, BoxError> {
    let holding = advice.holding().into_iter().enumerate();
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
        syncs: choice["sync"] != "none",
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
        let most = MAX_BYTES / question.record_bytes;
        let wanted = ((SAMPLE_NS / self.predicted_ns) as u64).clamp(50, most);
        let interval = if self.tick_every <= most { self.tick_every.max(1) } else { 1 };
        let writers = u64::from(question.sharers);
        (wanted / interval).max(1) * interval / writers * writers
    }
}
