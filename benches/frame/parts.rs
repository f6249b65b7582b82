//! A benchmark in parts, which its arguments choose.

use std::time::Instant;

use super::Failed;
use super::bed::Bed;
use crate::targets::{self, Target};

/// A part of the benchmark: its name, what it does in words, and the function that adds its rows.
pub type Part = (&'static str, &'static str, fn(&Bed, &mut Vec<Target>) -> Result<(), Failed>);

/// On the way, on standard error.
pub fn say(name: &str, what: &str) {
    eprintln!("bench-{name}: {what}");
}

/// Runs the chosen parts, or all, and leaves the table of `make bench-NAME`.
pub fn run(name: &str, parts: &[Part], programs: &[(&str, &str)]) -> Result<(), Failed> {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(word) = chosen.iter().find(|word| parts.iter().all(|(part, ..)| part != word)) {
        let known: Vec<&str> = parts.iter().map(|part| part.0).collect();
        return Err(format!("no part is called '{word}': {}", known.join(", ")).into());
    }
    let started = Instant::now();
    let bed = Bed::make(programs)?;
    let mut rows = Vec::new();
    for (part, words, rows_of) in parts {
        if chosen.is_empty() || chosen.iter().any(|word| word == part) {
            say(name, words);
            rows_of(&bed, &mut rows)?;
        }
    }
    // A part, or a trial, is not the report: it must not be taken for it.
    let kind = match (bed.quick, chosen.is_empty()) {
        (true, _) => "-quick",
        (_, true) => "",
        _ => "-part",
    };
    targets::finish(&format!("{name}{kind}"), &rows)?;
    say(name, &format!("took {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}
