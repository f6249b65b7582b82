//! The times of all contenders, with and without a target: a table, and target/bench/lib-figures.json.

use std::path::Path;

use serde_json::{Value, json};
use weir_model::Summary;

use crate::BoxError;
use crate::contender::Sample;
use crate::jobs::{Group, Time};
use crate::judge::per_unit;
use crate::rounds::GroupSamples;

/// The figures of one contender in one group.
pub struct ContenderFigures {
    pub group: &'static str,
    pub unit: &'static str,
    pub label: String,
    /// Or the reason why the contender could not run.
    pub times: Result<Times, String>,
}

/// The times of one contender in nanoseconds per unit.
pub struct Times {
    pub user: Option<Summary>,
    pub cpu: Summary,
    pub elapsed: Summary,
    /// Mean user and system times of getrusage(2): a single sample is a few ticks long.
    pub ticks: [f64; 2],
}

/// Returns the figures of all contenders of a group.
pub fn of(group: &Group, taken: &GroupSamples) -> Vec<ContenderFigures> {
    let figures = |label: &str, times| ContenderFigures {
        group: group.name,
        unit: group.unit,
        label: label.into(),
        times,
    };
    let measured = taken.samples.iter().filter_map(|(entry, samples)| {
        let summary = |time| Summary::of(&per_unit(taken, entry, samples, time));
        let user = if entry.bare.is_some() { summary(Time::User) } else { None };
        let sum = |pick: fn(&Sample) -> f64| samples.iter().map(pick).sum::<f64>();
        let ticks = [sum(|s| s.user_ns), sum(|s| s.system_ns)].map(|ns| ns / sum(|s| s.units));
        let times = Times { user, cpu: summary(Time::Cpu)?, elapsed: summary(Time::Elapsed)?, ticks };
        Some(figures(&entry.label, Ok(times)))
    });
    let absent = taken.absent.iter().map(|(label, why)| figures(label, Err(why.clone())));
    measured.chain(absent).collect()
}

fn as_json(all: &[ContenderFigures]) -> Value {
    let rows: Vec<Value> = all
        .iter()
        .map(|f| match &f.times {
            Ok(t) => json!({
                "group": f.group, "contender": f.label, "unit": f.unit, "user_ns": t.user, "cpu_ns": t.cpu,
                "elapsed_ns": t.elapsed, "getrusage_user_ns": t.ticks[0], "getrusage_system_ns": t.ticks[1],
            }),
            Err(why) => json!({ "group": f.group, "contender": f.label, "unit": f.unit, "absent": why }),
        })
        .collect();
    json!({ "figures": rows })
}

/// Prints the table and writes the file.
pub fn print(all: &[ContenderFigures]) -> Result<(), BoxError> {
    let width = all.iter().map(|f| f.label.chars().count()).max().unwrap_or(0);
    let mut group = "";
    for figures in all {
        if figures.group != group {
            group = figures.group;
            let head = format!("{group}: ns a {}", figures.unit);
            println!("\n{head:width$}      user       CPU   elapsed  getrusage: user  system");
        }
        match &figures.times {
            Ok(t) => {
                let user = t.user.map_or_else(|| "-".into(), |user| format!("{:.2}", user.median));
                println!(
                    "{:width$} {user:>9} {:9.2} {:9.2}        {:9.2} {:7.2}",
                    figures.label, t.cpu.median, t.elapsed.median, t.ticks[0], t.ticks[1]
                );
            }
            Err(why) => println!("{:width$}  {why}", figures.label),
        }
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&dir)?;
    Ok(std::fs::write(dir.join("lib-figures.json"), serde_json::to_string_pretty(&as_json(all))? + "\n")?)
}
