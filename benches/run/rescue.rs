//! What --rescue costs a program that it need not help, beside what two bare runs differ by.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::bed::Bed;
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::{Target, built};
use crate::{Failed, process};

/// Functions in the compiled file.
const FUNCTIONS: usize = 500;
const BYTES: usize = 200_000_000;

type Run<'a> = &'a dyn Fn(&[&str]) -> Result<f64, Failed>;

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    let source = bed.path("big.c");
    std::fs::write(&source, functions(bed.pick(FUNCTIONS, FUNCTIONS / 10)))?;
    let input = bed.path("big-in");
    std::fs::write(&input, vec![b'a'; bed.pick(BYTES, BYTES / 20)])?;
    rows.push(row(bed, "a compile", &|under| compile(bed, under, &source))?);
    rows.push(row(bed, "tr2b", &|under| {
        let mut command = bed.command(under, "tr2b");
        process::redirect(&mut command, &input, &bed.path("out-rescue"))?;
        process::seconds(&mut command)
    })?);
    Ok(())
}

/// Bare twice, and rescued: the noise floor is the interval of the two bare ones.
fn row(bed: &Bed, name: &str, run: Run) -> Result<Target, Failed> {
    let runs = [&[][..], &[], &["weir", "--rescue"]];
    let times = rounds(bed.pick(11, 3), runs.len(), |which| run(runs[which]))?;
    let (floor, cost) = (paired(pairs(&times, 1, 0))?, paired(pairs(&times, 2, 0))?);
    // What two bare runs differ by is no cost; where they differ by little, an interval that holds 1 is none either.
    let reached = cost.value <= floor.ci95[1].max(1.0) || cost.ci95[0] <= 1.0;
    Ok(Target {
        name: format!("--rescue, {name}"),
        target: "no more than two bare runs differ by".into(),
        measured: format!("{} times bare; bare beside itself {}", ratio(&cost), ratio(&floor)),
        reached,
    })
}

fn compile(bed: &Bed, under: &[&str], source: &Path) -> Result<f64, Failed> {
    let mut command = match under {
        [] => Command::new("cc"),
        [_, options @ ..] => {
            let mut command = Command::new(built::weir());
            command.arg("run").args(options).args(["--", "cc"]);
            command
        }
    };
    command.args(["-O1", "-c", "-o"]).arg(bed.path("big.o")).arg(source);
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
