//! Runs the parts of a benchmark that its arguments choose.

use std::time::Instant;

use super::BoxError;
use super::bench_dir::BenchDir;
use crate::targets::{self, Target};

/// A part of a benchmark: its name, a description, and the function that adds its rows.
pub type Part = (&'static str, &'static str, fn(&BenchDir, &mut Vec<Target>) -> Result<(), BoxError>);

/// Prints progress to standard error.
pub fn say(name: &str, what: &str) {
    eprintln!("bench-{name}: {what}");
}

/// Runs the chosen parts, or all, then prints and writes the table of `make bench-NAME`.
pub fn run(name: &str, parts: &[Part], programs: &[(&str, &str)]) -> Result<(), BoxError> {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(word) = chosen.iter().find(|word| parts.iter().all(|(part, ..)| part != word)) {
        let known: Vec<&str> = parts.iter().map(|part| part.0).collect();
        return Err(format!("no part is called '{word}': {}", known.join(", ")).into());
    }
    let started = Instant::now();
    let bench = BenchDir::make(programs)?;
    let mut rows = Vec::new();
    for (part, words, rows_of) in parts {
        if chosen.is_empty() || chosen.iter().any(|word| word == part) {
            say(name, words);
            // The figures of the other parts are kept.
            if let Err(error) = rows_of(&bench, &mut rows) {
                rows.push(Target {
                    name: format!("part {part}"),
                    target: "ends".into(),
                    measured: error.to_string(),
                    reached: false,
                });
            }
        }
    }
    // The table of a part or a trial has another file name, so that it does not replace the report.
    let kind = match (bench.quick, chosen.is_empty()) {
        (true, _) => "-quick",
        (_, true) => "",
        _ => "-part",
    };
    targets::finish(&format!("{name}{kind}"), &rows)?;
    say(name, &format!("took {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}
