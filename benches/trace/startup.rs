//! The time of a program that does nothing, under weir.

use std::process::Command;

use crate::bench_dir::BenchDir;
use crate::figure::{information, millis, summary};
use crate::targets::Target;
use crate::traced::{self, weir};
use crate::{BoxError, process};

const ROUNDS: usize = 25;
const MAX_S: f64 = 0.060;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    for (engine, options) in [("default", &[][..]), ("--engine ptrace", &["--engine", "ptrace"])] {
        let (mut more, mut own) = (Vec::new(), Vec::new());
        for round in 0..bench.pick(ROUNDS, 6) {
            let bare = || process::seconds(process::silent(&mut Command::new("true")));
            let traced_run = || -> Result<_, BoxError> {
                let mut command = weir(bench, options);
                traced::run(bench, process::silent(command.args(["--", "true"])))
            };
            let (a, b) = if round % 2 == 0 {
                let a = bare()?;
                (a, traced_run()?)
            } else {
                let b = traced_run()?;
                (bare()?, b)
            };
            more.push(b.whole - a);
            own.push(b.startup()?);
        }
        let (more, own) = (summary(&more)?, summary(&own)?);
        rows.push(Target {
            name: format!("true under weir, {engine}: more than true alone"),
            target: format!("at most {:.0} ms", MAX_S * 1e3),
            measured: millis(&more),
            reached: more.median <= MAX_S,
        });
        rows.push(information(format!("of it before the program starts, {engine}"), millis(&own)));
    }
    Ok(())
}
