//! The time of a program that does nothing, bare, under stdbuf and under weir.

use std::process::Command;

use crate::bench_dir::BenchDir;
use crate::figure::{information, millis, summary};
use crate::rounds::rounds;
use crate::targets::{Target, built};
use crate::{BoxError, process};

const MAX_MORE_S: f64 = 0.001;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let weir = built::weir();
    let runs: [&[&str]; 5] = [
        &["true"],
        &["stdbuf", "-oL", "true"],
        &[weir, "run", "-oL", "--", "true"],
        &[weir, "run", "--", "true"],
        &[weir, "run", "--rescue", "--", "true"],
    ];
    let times = rounds(bench.pick(101, 15), runs.len(), |which| {
        process::seconds(process::silent(Command::new(runs[which][0]).args(&runs[which][1..])))
    })?;
    let more = |which: usize, than: usize| {
        summary(&times.iter().map(|row| row[which] - row[than]).collect::<Vec<f64>>())
    };
    let modes = more(2, 1)?;
    rows.push(Target {
        name: "true under weir run -oL: more than under stdbuf -oL".into(),
        target: format!("at most {:.0} ms", MAX_MORE_S * 1e3),
        measured: millis(&modes),
        reached: modes.median <= MAX_MORE_S,
    });
    for (name, which, than) in [
        ("stdbuf -oL: more than bare", 1, 0),
        ("weir run -oL: more than bare", 2, 0),
        ("weir run: more than under stdbuf -oL", 3, 1),
        ("weir run --rescue: more than under stdbuf -oL", 4, 1),
    ] {
        rows.push(information(format!("true under {name}"), millis(&more(which, than)?)));
    }
    Ok(())
}
