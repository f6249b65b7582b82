//! Compares the methods of a log at each length of a line, because the program cannot choose the length.

use weir_model::bench::{BenchAnswer, BenchRow, ratio};
use weir_model::{Size, estimate};

use super::{Numbered, View, elapsed, figure, joined, list_sizes, name, seconds};

/// The comparison of the rows of one length.
struct Compared<'a> {
    bytes: u64,
    /// The fastest row and those that tie with it, by name.
    best: Vec<Numbered<'a>>,
    slower: Vec<Numbered<'a>>,
}

impl Compared<'_> {
    fn names(&self) -> Vec<String> {
        self.best.iter().map(|(_, row)| name(row)).collect()
    }
}

/// Compares the methods and modes at each length of a line.
pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    if !view.group.key.has_lines() {
        return None;
    }
    let rows = view.comparable();
    let mut lengths: Vec<u64> = rows.iter().map(|(_, row)| row.record_bytes).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let all: Vec<Compared> = lengths.iter().filter_map(|&bytes| compare(view, &rows, bytes)).collect();
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    // Lengths that follow each other and have the same best rows make one part.
    for run in all.chunk_by(|a, b| a.names() == b.names() && a.slower.is_empty() == b.slower.is_empty()) {
        let (text, ratio) = part(run, &lengths)?;
        parts.push(text);
        evidence.extend(run.iter().flat_map(|compared| compared.best.iter().copied().map(elapsed)));
        evidence.extend(ratio.map(|value| figure(None, "ratio", value)));
    }
    if parts.is_empty() {
        return None;
    }
    let text = format!("The program decides the length of a line. {}.", parts.join(". "));
    view.answer("What to choose here?", text, evidence)
}

/// Returns the rows of a length, divided by the noise; `None` for fewer than two.
fn compare<'a>(view: &View, rows: &[Numbered<'a>], bytes: u64) -> Option<Compared<'a>> {
    let mut own: Vec<Numbered> = rows.iter().copied().filter(|(_, row)| row.record_bytes == bytes).collect();
    own.sort_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1)));
    let first = own.first().filter(|_| own.len() > 1)?.1;
    let is_best = |row: &BenchRow| {
        std::ptr::eq(row, first) || ratio(row, first).is_none_or(|ratio| ratio.is_tie(view.noise))
    };
    let (mut best, slower): (Vec<Numbered>, Vec<Numbered>) = own.iter().partition(|(_, row)| is_best(row));
    best.sort_by_key(|(number, _)| *number);
    Some(Compared { bytes, best, slower })
}

/// Returns the clause about lengths with the same best rows, and its ratio.
fn part(run: &[Compared], lengths: &[u64]) -> Option<(String, Option<f64>)> {
    let first = run.first()?;
    let sizes: Vec<u64> = run.iter().map(|compared| compared.bytes).collect();
    let at = list_sizes(&sizes, lengths);
    let names = first.names();
    // A comparison with plain system calls comes first, because these need no library.
    let plain = first.slower.iter().find(|(_, row)| row.method == "syscall");
    let Some(other) = plain.or(first.slower.last()) else { return Some((format!("At {at} all tie"), None)) };
    let fastest = first.best.iter().copied().min_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1)))?;
    let ahead = ratio(other.1, fastest.1)?;
    let (is, of) = match names.len() {
        1 => ("is fastest", "its time".into()),
        _ => ("are fastest and tie", format!("the time of {}", name(fastest.1))),
    };
    let at_first = if sizes.len() > 1 { format!(" at {}", Size(first.bytes)) } else { String::new() };
    let slower = format!("{} takes {} {of}{at_first}", name(other.1), estimate::ratio(&ahead));
    Some((format!("At {at} {} {is}: {slower}", joined(&names)), Some(ahead.value)))
}
