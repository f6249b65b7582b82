//! The most important sentence of a group.

use weir_model::Size;
use weir_model::bench::BenchRow;
use weir_model::duration::format_seconds;

use super::labels;
use super::section::{Section, label, variant};
use crate::number::ratio;
use crate::text::list;

/// Returns the sentence, made from the group's rows and its knee.
pub(super) fn lead(section: &Section) -> Option<String> {
    let best = section.best()?;
    match smallest(section) {
        Some(smallest) => Some(of_curve(section, smallest, best)),
        None => Some(of_methods(section, best)),
    }
}

/// Returns the row with the smallest record of the model's method, else of the first method with several records.
pub(super) fn smallest<'a>(section: &Section<'a>) -> Option<(&'a BenchRow, f64)> {
    let ends = |name: &str| {
        let curve = || section.measured().filter(|(row, _)| variant(row) == name);
        let least = curve().min_by_key(|(row, _)| row.record_bytes)?;
        curve().any(|(row, _)| row.record_bytes != least.0.record_bytes).then_some(least)
    };
    let modelled = section.group.model_method.as_ref();
    let of_model = |name: &&String| modelled.is_some_and(|method| name.split(' ').next() == Some(method));
    section.variants.iter().filter(of_model).chain(&section.variants).find_map(|name| ends(name))
}

/// Returns the time of a row, with `about` if it is extrapolated and `*` if the table has a remark.
fn about(row: &BenchRow, seconds: f64) -> String {
    let about = if row.extrapolated { "about " } else { "" };
    format!("{about}{}{}", format_seconds(seconds), if row.remark.is_some() { " *" } else { "" })
}

fn of_curve(section: &Section, (row, seconds): (&BenchRow, f64), (best, best_s): (&BenchRow, f64)) -> String {
    let mut text =
        format!("Smallest record, {}: {} {}", Size(row.record_bytes), variant(row), about(row, seconds));
    if let Some(vs) = row.vs_best.filter(|_| !row.ties_with_best) {
        text += &format!(" ({} the best)", ratio(vs.value));
    }
    let is_other =
        |other: &BenchRow| other.record_bytes == row.record_bytes && variant(other) != variant(row);
    let others = section.measured().filter(|(other, other_s)| is_other(other) && *other_s < seconds);
    if let Some((other, other_s)) = others.min_by(|a, b| a.1.total_cmp(&b.1)) {
        text += &format!(", {} {}", variant(other), about(other, other_s));
    }
    text += &format!(". Best: {}, {}.", label(best), about(best, best_s));
    text + &gains(section)
}

/// Returns the sentence about the knee. A knee at the largest record means that larger ones may gain more.
fn gains(section: &Section) -> String {
    let Some(knee) = &section.group.knee else { return String::new() };
    let own = section.measured().map(|(row, _)| row);
    let own = own.filter(|row| Some(&row.method) == section.group.model_method.as_ref());
    match own.map(|row| row.record_bytes).max() {
        Some(largest) if largest == knee.bytes => {
            format!(" Gains go on up to {}, the largest record measured.", Size(largest))
        }
        _ => format!(" Gains stop at {}.", labels::knee(knee)),
    }
}

fn of_methods(section: &Section, (best, best_s): (&BenchRow, f64)) -> String {
    let mut text = format!("Fastest: {}, {}", label(best), about(best, best_s));
    let is_tie = |row: &BenchRow| row.ties_with_best && !std::ptr::eq(row, best);
    let ties: Vec<String> =
        section.measured().filter(|(row, _)| is_tie(row)).map(|(row, _)| label(row)).collect();
    if !ties.is_empty() {
        text += &format!(" (ties with {})", list(&ties));
    }
    let slowest = section.measured().max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((row, seconds)) = slowest.filter(|(row, _)| !row.ties_with_best && !std::ptr::eq(*row, best))
    {
        let vs = row.vs_best.map_or(String::new(), |vs| format!(", {} the best", ratio(vs.value)));
        text += &format!(". Slowest: {}, {}{vs}", label(row), about(row, seconds));
    }
    text + "."
}
