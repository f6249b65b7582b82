//! Ratios within the rounds, compared with the targets.

use weir_model::Ratio;

use crate::contender::{Entry, Sample};
use crate::jobs::{Group, Requirement, TargetRow, Time};
use crate::rounds::GroupSamples;
use crate::targets::Target;

/// Returns the nanoseconds per byte or line, round by round. Subtracts those of the bare system calls for [`Time::User`].
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

/// Formats a ratio: `2.61 [2.55, 2.66]`.
fn format_ratio(ratio: &Ratio) -> String {
    format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.ci95[0], ratio.ci95[1])
}

/// Returns true if the target is reached. `time` is libweir's time over the rival's, `speed` its inverse.
pub fn reached(requirement: Requirement, time: &Ratio, speed: &Ratio) -> bool {
    match requirement {
        Requirement::TimesAsFast(times) => speed.value >= times,
        Requirement::Faster => speed.ci95[0] > 1.0,
        Requirement::Within(times) => time.value <= times,
        Requirement::NotSlowerThan(times) => time.ci95[0] <= times,
        Requirement::SameTwice(apart) => time.value.ln().abs() <= apart.ln_1p(),
    }
}

/// Returns a row of the table from pairs of times of the same rounds: libweir's and the rival's.
pub fn target(name: &str, requirement: Requirement, pairs: &[(f64, f64)], remark: &str) -> Target {
    let (Some(time), Some(speed)) =
        (Ratio::paired(pairs.iter().copied()), Ratio::paired(pairs.iter().map(|&(a, b)| (b, a))))
    else {
        return missing(name, requirement, "nothing was measured");
    };
    let shown = match requirement {
        Requirement::TimesAsFast(_) | Requirement::Faster => {
            format!("{} times as fast", format_ratio(&speed))
        }
        _ => format!("{} times as long", format_ratio(&time)),
    };
    let measured = format!("{shown}{remark}");
    Target {
        name: name.into(),
        target: describe(requirement),
        measured,
        reached: reached(requirement, &time, &speed),
    }
}

/// Returns a row for a target that could not be measured, which is not reached.
pub fn missing(name: &str, requirement: Requirement, why: &str) -> Target {
    Target { name: name.into(), target: describe(requirement), measured: why.into(), reached: false }
}

fn describe(requirement: Requirement) -> String {
    match requirement {
        Requirement::TimesAsFast(times) => format!("at least {times:.1} times as fast"),
        Requirement::Faster => "faster: the whole interval".into(),
        Requirement::Within(times) => format!("at most {times:.2} times as long"),
        Requirement::NotSlowerThan(times) => format!("not slower: interval begins at {times:.2} or below"),
        Requirement::SameTwice(apart) => format!("at most {:.0} % apart", apart * 100.0),
    }
}

/// Returns the rows of a group.
pub fn rows(group: &Group, taken: &GroupSamples) -> Vec<Target> {
    group.rows.iter().map(|row| judge(group, row, taken)).collect()
}

fn judge(group: &Group, row: &TargetRow, taken: &GroupSamples) -> Target {
    let (Some(ours), Some(theirs)) = (taken.of(&row.ours), taken.of(&row.theirs)) else {
        let why = taken.absent.iter().find(|(label, _)| *label == row.ours || *label == row.theirs);
        return missing(row.name, row.requirement, why.map_or("not measured", |(_, why)| why));
    };
    let [a, b] = [ours, theirs].map(|(entry, samples)| per_unit(taken, entry, samples, row.time));
    let middle = |values: &[f64]| weir_model::stats::median(&mut values.to_vec());
    let mut remark = format!(" ({:.3} and {:.3} ns a {})", middle(&a), middle(&b), group.unit);
    if let (Requirement::NotSlowerThan(_), Some(noise)) = (row.requirement, same_twice(taken, row)) {
        remark += &format!("; the same twice {}", format_ratio(&noise));
    }
    let pairs: Vec<_> = a.into_iter().zip(b).collect();
    target(row.name, row.requirement, &pairs, &remark)
}

/// Returns the ratio of two equal runs of one of the two contenders, if the group has such runs.
fn same_twice(taken: &GroupSamples, row: &TargetRow) -> Option<Ratio> {
    let of = |label: &str| {
        let (entry, samples) = taken.of(label)?;
        Some(per_unit(taken, entry, samples, row.time))
    };
    [&row.ours, &row.theirs].into_iter().find_map(|label| {
        let (a, b) = (of(label)?, of(&format!("{label}, again"))?);
        Ratio::paired(a.into_iter().zip(b))
    })
}
