//! The cost of --rescue for programs that lose nothing, compared with the difference of two bare runs.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::bench_dir::BenchDir;
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::{Target, built};
use crate::{BoxError, process};

/// Number of functions in the compiled file.
const FUNCTIONS: usize = 500;
const BYTES: usize = 200_000_000;

type Run<'a> = &'a dyn Fn(&[&str]) -> Result<f64, BoxError>;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let source = bench.path("big.c");
    std::fs::write(&source, functions(bench.pick(FUNCTIONS, FUNCTIONS / 10)))?;
    let input = bench.path("big-in");
    std::fs::write(&input, vec![b'a'; bench.pick(BYTES, BYTES / 20)])?;
    rows.push(row(bench, "a compile", &|under| compile(bench, under, &source))?);
    rows.push(row(bench, "tr2b", &|under| {
        let mut command = bench.command(under, "tr2b");
        process::redirect(&mut command, &input, &bench.path("out-rescue"))?;
        process::seconds(&mut command)
    })?);
    Ok(())
}

/// Runs the program bare twice and with --rescue. The interval of the two bare runs is the noise floor.
fn row(bench: &BenchDir, name: &str, run: Run) -> Result<Target, BoxError> {
    let runs = [&[][..], &[], &["weir", "--rescue"]];
    let times = rounds(bench.pick(11, 3), runs.len(), |which| run(runs[which]))?;
    let (floor, cost) = (paired(pairs(&times, 1, 0))?, paired(pairs(&times, 2, 0))?);
    // A cost within the noise floor does not count, nor one whose interval contains 1.
    let reached = cost.value <= floor.ci95[1].max(1.0) || cost.ci95[0] <= 1.0;
    Ok(Target {
        name: format!("--rescue, {name}"),
        target: "no more than two bare runs differ by".into(),
        measured: format!("{} times bare; bare beside itself {}", ratio(&cost), ratio(&floor)),
        reached,
    })
}

fn compile(bench: &BenchDir, under: &[&str], source: &Path) -> Result<f64, BoxError> {
    let mut command = match under {
        [] => Command::new("cc"),
        [_, options @ ..] => {
            let mut command = Command::new(built::weir());
            command.arg("run").args(options).args(["--", "cc"]);
            command
        }
    };
    command.args(["-O1", "-c", "-o"]).arg(bench.path("big.o")).arg(source);
    process::seconds(process::silent(&mut command))
}

fn functions(number: usize) -> String {
    let mut text = String::new();
    for at in 0..number {
        let _ = writeln!(
            text,
            "int f{at}(int *a, int n) {{ int s = {at}; for (int i = 0; i < n; i++) s += a[i] * (i ^ {at}) % 7; return s; }}"
        );
    }
    text
}
