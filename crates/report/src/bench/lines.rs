//! The most important sentence of a log: its record is the line, so methods are compared at equal lengths.

use weir_model::Size;
use weir_model::bench::{BenchRow, ratio};
use weir_model::estimate::short_ratio;

use super::lead::{ties_text, time};
use super::section::{Section, variant};

/// Returns a sentence about the shortest and one about the longest line; `None` without measured rows.
pub(super) fn lead(section: &Section) -> Option<String> {
    let lengths = || section.comparable().map(|(row, _)| row.record_bytes);
    let (shortest, longest) = (lengths().min()?, lengths().max()?);
    let mut text = of_length(section, shortest)?;
    if longest != shortest {
        text += &format!(" {}", of_length(section, longest)?);
    }
    Some(text)
}

/// Returns the sentence about the rows of one length: the fastest, those that tie with it, the slowest.
fn of_length(section: &Section, bytes: u64) -> Option<String> {
    let mut rows: Vec<(&BenchRow, f64)> =
        section.comparable().filter(|(row, _)| row.record_bytes == bytes).collect();
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (fastest, others) = rows.split_first()?;
    let fastest = fastest.0;
    let is_tie = |row: &BenchRow| ratio(row, fastest).is_none_or(|ratio| ratio.is_tie(section.noise));
    let ties: Vec<&BenchRow> = others.iter().map(|(row, _)| *row).filter(|row| is_tie(row)).collect();
    let (head, of) =
        (format!("Lines of {}", Size(bytes)), format!("{}, {}", variant(fastest), time(fastest)));
    if others.is_empty() {
        return Some(format!("{head}: {of}."));
    }
    if ties.len() == others.len() {
        return Some(format!("{head}: all {} tie; {of}.", rows.len()));
    }
    let names: Vec<String> = ties.iter().map(|row| variant(row)).collect();
    let tied = ties_text(&names).map_or(String::new(), |ties| format!(" ({ties})"));
    let slowest = others.last().map(|(row, _)| *row).filter(|row| !is_tie(row));
    let slowest = slowest.and_then(|row| {
        let slower = short_ratio(&ratio(row, fastest)?);
        Some(format!("; slowest {}, {}, {slower} its time", variant(row), time(row)))
    });
    Some(format!("{head}: fastest {of}{tied}{}.", slowest.unwrap_or_default()))
}
