//! The most important sentence of a group.

use weir_model::bench::{BenchRow, FROM_TO, Gains};
use weir_model::estimate::{median_seconds, short_ratio};
use weir_model::{Knee, Size};

use super::section::{Section, label, variant};
use super::{labels, lines};
use crate::text::list;

/// Largest number of rows that tie with another one and are named.
const TIES_NAMED: usize = 2;

/// Returns the sentence, made from the group's rows and its knee.
pub(super) fn lead(section: &Section) -> Option<String> {
    let best = section.best()?.0;
    if let Some((from, to)) = section.key().dir.split_once(FROM_TO) {
        return Some(of_two_directories(section, best, from, to));
    }
    match smallest(section) {
        _ if section.key().has_lines() => lines::lead(section),
        Some((smallest, _)) => Some(of_curve(section, smallest, best)),
        None => Some(of_methods(section, best)),
    }
}

/// Returns the row with the smallest record of the model's method, else of the first method with several records. If the
/// rows of some method differ in buffer or mode, the user compares those, and the sentence is about that method.
pub(super) fn smallest<'a>(section: &Section<'a>) -> Option<(&'a BenchRow, f64)> {
    let ends = |name: &str| {
        let curve = || section.measured().filter(|(row, _)| variant(row) == name);
        let least = curve().min_by_key(|(row, _)| row.record_bytes)?;
        curve().any(|(row, _)| row.record_bytes != least.0.record_bytes).then_some(least)
    };
    let compared = section.measured().find(|(row, _)| row.buffer_bytes.is_some() || row.mode.is_some());
    let compared = compared.map(|(row, _)| &row.method);
    let wanted = compared.or(section.group.model_method.as_ref());
    let is_wanted = |name: &&String| wanted.is_some_and(|method| name.split(' ').next() == Some(method));
    section.variants.iter().filter(is_wanted).chain(&section.variants).find_map(|name| ends(name))
}

/// Returns the time of a row, with `about` if it is extrapolated and `*` if the table has a remark.
pub(super) fn time(row: &BenchRow) -> String {
    let text = row.elapsed_s.map_or(String::new(), |elapsed| median_seconds(&elapsed));
    let about = if row.extrapolated && !text.starts_with("about") { "about " } else { "" };
    format!("{about}{text}{}", if row.remark.is_some() { " *" } else { "" })
}

fn of_curve(section: &Section, row: &BenchRow, best: &BenchRow) -> String {
    let mut text = format!("Smallest record, {}: {} {}", Size(row.record_bytes), variant(row), time(row));
    if let Some(vs) = row.vs_best.filter(|_| !row.ties_with_best) {
        text += &format!(" ({} the best)", short_ratio(&vs));
    }
    let is_other =
        |other: &BenchRow| other.record_bytes == row.record_bytes && variant(other) != variant(row);
    let others = section.comparable().filter(|(other, other_s)| is_other(other) && *other_s < row.median_s());
    if let Some((other, _)) = others.min_by(|a, b| a.1.total_cmp(&b.1)) {
        text += &format!(", {} {}", variant(other), time(other));
    }
    text += &format!(". Best: {}, {}{}.", label(best), time(best), tied(section, best));
    text + &gains(section)
}

/// Returns which rows tie with the best; `None` for none.
fn tied_names(section: &Section, best: &BenchRow) -> Option<String> {
    let is_tie = |row: &BenchRow| row.ties_with_best && !std::ptr::eq(row, best);
    let ties: Vec<String> =
        section.measured().filter(|(row, _)| is_tie(row)).map(|(row, _)| label(row)).collect();
    ties_text(&ties)
}

/// Returns which rows tie with the one that a sentence has named; `None` for none.
pub(super) fn ties_text(names: &[String]) -> Option<String> {
    match names.len() {
        0 => None,
        1..=TIES_NAMED => Some(format!("ties with {}", list(names))),
        many => Some(format!("{many} others tie with it")),
    }
}

/// Returns the rows that tie with the best, in parentheses; empty for none.
fn tied(section: &Section, best: &BenchRow) -> String {
    tied_names(section, best).map_or(String::new(), |ties| format!(" ({ties})"))
}

/// Returns whether the interval of a knee reaches the largest record: larger ones may then gain more.
fn is_open(section: &Section, knee: &Knee) -> bool {
    section.largest_of_knee().is_none_or(|largest| knee.ci95[1] >= largest)
}

/// Returns where the gains of larger records stop.
fn gains_of(section: &Section) -> Option<Gains> {
    Gains::of(&section.curve(), section.group.knee, section.noise)
}

/// Returns the sentence about the gains of larger records, which names the curve.
fn gains(section: &Section) -> String {
    let curve = section.curve();
    let (Some(gains), Some(row)) = (gains_of(section), curve.first()) else { return String::new() };
    let method = variant(row);
    match gains {
        Gains::Stop(knee) => {
            let or_more = if is_open(section, &knee) { " or more" } else { "" };
            format!(" Gains of {method} stop at {}{or_more}.", labels::knee(&knee))
        }
        Gains::Level { from, to, .. } => {
            let [from, to] = [from, to].map(Size);
            format!(" {method}: no gain from {from} to {to}, the largest record measured, exceeds the noise.")
        }
        Gains::GoOn { to, .. } => {
            format!(" No knee: gains of {method} go on up to {}, the largest record measured.", Size(to))
        }
    }
}

fn of_methods(section: &Section, best: &BenchRow) -> String {
    let mut text = format!("Fastest: {}, {}{}", label(best), time(best), tied(section, best));
    let slowest = section.comparable().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row);
    if let Some(row) = slowest.filter(|row| !row.ties_with_best && !std::ptr::eq(*row, best)) {
        let vs = row.vs_best.map_or(String::new(), |vs| format!(", {} the best", short_ratio(&vs)));
        text += &format!(". Slowest: {}, {}{vs}", label(row), time(row));
    }
    text + "."
}

/// Returns the answer for a copy between two directories: the block size that is enough, and what is faster still.
fn of_two_directories(section: &Section, best: &BenchRow, from: &str, to: &str) -> String {
    let may_gain = || "larger ones may gain more".to_string();
    let gains = gains_of(section);
    let (are, more) = match gains {
        Some(Gains::Stop(knee)) if is_open(section, &knee) => ("or more are needed", may_gain()),
        Some(Gains::Stop(knee)) if knee.ci95[1] > knee.bytes => {
            ("are about enough", format!("those above {} win less than 5 %", Size(knee.ci95[1])))
        }
        Some(Gains::Stop(_)) => ("are enough", "larger ones win less than 5 %".into()),
        Some(Gains::Level { to, .. }) => {
            ("are enough", format!("no gain up to {}, the largest measured, exceeds the noise", Size(to)))
        }
        Some(Gains::GoOn { .. }) | None => ("are the fastest measured", may_gain()),
    };
    let of_gains = |gains: Gains| section.curve().into_iter().find(|row| row.record_bytes == gains.enough());
    let enough = gains.and_then(of_gains).unwrap_or(best);
    let ties = if std::ptr::eq(enough, best) { tied_names(section, best) } else { None };
    let mut text = format!(
        "From {from} to {to}: blocks of {} {are} ({} {}{}); {more}",
        Size(enough.record_bytes),
        variant(enough),
        time(enough),
        ties.map_or(String::new(), |ties| format!("; {ties}"))
    );
    let is_other = best.method != enough.method && !enough.ties_with_best;
    if let Some(vs) = enough.vs_best.filter(|_| is_other) {
        text += &format!("; {} is faster: the blocks take {} its time", label(best), short_ratio(&vs));
    }
    text + "."
}
