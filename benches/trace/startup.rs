//! How long a program that does nothing takes under weir.

use std::process::Command;

use crate::bed::Bed;
use crate::figure::{information, millis, summary};
use crate::targets::Target;
use crate::traced::{self, weir};
use crate::{Failed, process};

const ROUNDS: usize = 25;
const MOST_S: f64 = 0.060;

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    for (engine, options) in [("default", &[][..]), ("--engine ptrace", &["--engine", "ptrace"])] {
        let (mut more, mut own) = (Vec::new(), Vec::new());
        for round in 0..bed.pick(ROUNDS, 6) {
            let bare = || process::seconds(process::silent(&mut Command::new("true")));
            let watched = || -> Result<_, Failed> {
                let mut command = weir(bed, options);
                traced::run(bed, process::silent(command.args(["--", "true"])))
            };
            let (a, b) = if round % 2 == 0 {
                let a = bare()?;
                (a, watched()?)
            } else {
                let b = watched()?;
                (bare()?, b)
            };
            more.push(b.whole - a);
            own.push(b.startup()?);
        }
        let (more, own) = (summary(&more)?, summary(&own)?);
        rows.push(Target {
            name: format!("true under weir, {engine}: more than true alone"),
            target: format!("at most {:.0} ms", MOST_S * 1e3),
            measured: millis(&more),
            reached: more.median <= MOST_S,
        });
        rows.push(information(format!("of it before the program starts, {engine}"), millis(&own)));
    }
    Ok(())
}
