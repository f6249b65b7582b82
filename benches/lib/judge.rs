//! Ratios within the rounds, and whether they are what they must be.

use weir_model::Ratio;

use crate::contender::{Entry, Sample};
use crate::jobs::{Group, Requirement, Row, Time};
use crate::rounds::GroupSamples;
use crate::targets::Target;

/// Nanoseconds for one byte or line, round by round; less the system calls' own where that is asked for.
pub fn per_unit(taken: &GroupSamples, entry: &Entry, samples: &[Sample], time: Time) -> Vec<f64> {
    let bare = entry.bare.and_then(|label| taken.of(label));
    let pick = |sample: &Sample| if time == Time::Elapsed { sample.elapsed_ns } else { sample.cpu_ns };
    let each = |sample: &Sample| pick(sample) / sample.units;
    let calls = |round: usize| match bare {
        Some((_, bare)) if time == Time::User => bare.get(round).map_or(0.0, each),
        _ => 0.0,
    };
    samples.iter().enumerate().map(|(round, sample)| each(sample) - calls(round)).collect()
}

/// How a ratio is written: `2.61 [2.55, 2.66]`.
fn written(ratio: &Ratio) -> String {
    format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.ci95[0], ratio.ci95[1])
}

/// `time` is ours over theirs, `speed` theirs over ours.
pub fn reached(want: Requirement, time: &Ratio, speed: &Ratio) -> bool {
    match want {
        Requirement::TimesAsFast(times) => speed.value >= times,
        Requirement::Faster => speed.ci95[0] > 1.0,
        Requirement::Within(times) => time.value <= times,
        Requirement::NotSlowerThan(times) => time.ci95[0] <= times,
        Requirement::SameTwice(apart) => time.value.ln().abs() <= apart.ln_1p(),
    }
}

/// One line of the table, from pairs of (ours, theirs) of the same rounds.
pub fn target(name: &str, want: Requirement, pairs: &[(f64, f64)], remark: &str) -> Target {
    let (Some(time), Some(speed)) =
        (Ratio::paired(pairs.iter().copied()), Ratio::paired(pairs.iter().map(|&(a, b)| (b, a))))
    else {
        return missing(name, want, "nothing was measured");
    };
    let shown = match want {
        Requirement::TimesAsFast(_) | Requirement::Faster => format!("{} times as fast", written(&speed)),
        _ => format!("{} times as long", written(&time)),
    };
    let measured = format!("{shown}{remark}");
    Target { name: name.into(), target: asked(want), measured, reached: reached(want, &time, &speed) }
}

/// A target that could not be measured is not reached.
pub fn missing(name: &str, want: Requirement, why: &str) -> Target {
    Target { name: name.into(), target: asked(want), measured: why.into(), reached: false }
}

fn asked(want: Requirement) -> String {
    match want {
        Requirement::TimesAsFast(times) => format!("at least {times:.1} times as fast"),
        Requirement::Faster => "faster: the whole interval".into(),
        Requirement::Within(times) => format!("at most {times:.2} times as long"),
        Requirement::NotSlowerThan(times) => format!("not slower: interval begins at {times:.2} or below"),
        Requirement::SameTwice(apart) => format!("at most {:.0} % apart", apart * 100.0),
    }
}

/// The group's rows.
pub fn rows(group: &Group, taken: &GroupSamples) -> Vec<Target> {
    group.rows.iter().map(|row| judge(group, row, taken)).collect()
}

fn judge(group: &Group, row: &Row, taken: &GroupSamples) -> Target {
    let (Some(ours), Some(theirs)) = (taken.of(&row.ours), taken.of(&row.theirs)) else {
        let why = taken.absent.iter().find(|(label, _)| *label == row.ours || *label == row.theirs);
        return missing(row.name, row.want, why.map_or("not measured", |(_, why)| why));
    };
    let [a, b] = [ours, theirs].map(|(entry, samples)| per_unit(taken, entry, samples, row.time));
    let middle = |values: &[f64]| weir_model::stats::median(&mut values.to_vec());
    let mut remark = format!(" ({:.3} and {:.3} ns a {})", middle(&a), middle(&b), group.unit);
    if let (Requirement::NotSlowerThan(_), Some(noise)) = (row.want, twice(taken, row)) {
        remark += &format!("; the same twice {}", written(&noise));
    }
    let pairs: Vec<_> = a.into_iter().zip(b).collect();
    target(row.name, row.want, &pairs, &remark)
}

/// What one of the two showed against itself, if it was run twice a round.
fn twice(taken: &GroupSamples, row: &Row) -> Option<Ratio> {
    let of = |label: &str| {
        let (entry, samples) = taken.of(label)?;
        Some(per_unit(taken, entry, samples, row.time))
    };
    [&row.ours, &row.theirs].into_iter().find_map(|label| {
        let (a, b) = (of(label)?, of(&format!("{label}, again"))?);
        Ratio::paired(a.into_iter().zip(b))
    })
}
