//! The comparison of two runs.

use weir_model::Size;
use weir_model::bench::GroupKey;
use weir_model::bench::compare::{BenchComparison, ComparedRow, ComparisonVerdict};
use weir_model::number::counted;
use weir_model::stats::Ratio;

use super::labels;
use crate::block::Block;
use crate::number::{TimeUnit, percent, ratio};
use crate::style::Emphasis;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};

/// Returns all blocks of a comparison in reading order.
pub fn blocks_compare(comparison: &BenchComparison) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title(format!("A: {} · B: {}", comparison.a, comparison.b)),
        Block::Lead(counts(comparison)),
        Block::Aside(format!(
            "a tie is a difference within ±{} % (A/A noise), or one with an interval that contains 1",
            percent(comparison.noise)
        )),
    ];
    let mut groups: Vec<&GroupKey> = Vec::new();
    for row in &comparison.rows {
        if !groups.contains(&&row.group) {
            groups.push(&row.group);
        }
    }
    for key in groups {
        let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.group == *key).collect();
        blocks.push(Block::Title(labels::title(key)));
        blocks.push(Block::Table(table(&rows)));
    }
    for (name, only) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        let missing = |label: &String| Block::Missing { what: label.clone(), why: format!("only in {name}") };
        blocks.extend(only.iter().map(missing));
    }
    blocks.extend(comparison.warnings.iter().cloned().map(Block::Warning));
    blocks
}

fn counts(comparison: &BenchComparison) -> String {
    let is = |row: &&ComparedRow, verdict| row.ratio.has_interval() && row.verdict == verdict;
    let count = |verdict| comparison.rows.iter().filter(|row| is(row, verdict)).count();
    let [faster, slower, ties] =
        [ComparisonVerdict::Faster, ComparisonVerdict::Slower, ComparisonVerdict::Tie].map(count);
    match comparison.rows.len() {
        0 => "The two runs have no row in common.".into(),
        all => {
            let rows = counted(all as u64, "row");
            let unjudged = not_judged(all - faster - slower - ties);
            format!("B against A, {rows}: {faster} faster, {slower} slower, {ties} tied{unjudged}.")
        }
    }
}

/// Returns the end of a sentence about `rows` without an interval; nothing for none.
pub(super) fn not_judged(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!(", {rows} not judged (too few rounds)") }
}

fn table(rows: &[&ComparedRow]) -> Table {
    let unit = TimeUnit::for_values(rows.iter().flat_map(|row| [row.a_s, row.b_s]));
    let any = |has: fn(&ComparedRow) -> bool| rows.iter().any(|row| has(row));
    let (buffer, mode) = (any(|row| row.buffer_bytes.is_some()), any(|row| row.mode.is_some()));
    let mut columns = vec![Column::new("method", "", Align::Left)];
    columns.extend(buffer.then(|| Column::new("buffer", "", Align::Right)));
    columns.extend(mode.then(|| Column::new("mode", "", Align::Left)));
    columns.extend([
        Column::new("record", "", Align::Right),
        Column::new("A", unit.name, Align::Decimal),
        Column::new("B", unit.name, Align::Decimal),
        Column::new("B/A", "", Align::Right),
        Column::new("95 % interval", "", Align::Left).priority(ColumnPriority::Rank(1)),
        Column::new("B is", "", Align::Left),
    ]);
    let cells = |row: &ComparedRow| {
        let (word, emphasis) = verdict(&row.ratio, row.verdict);
        let mut cells: Vec<TableCell> = vec![row.method.as_str().into()];
        cells.extend(
            buffer.then(|| row.buffer_bytes.map_or(String::new(), |bytes| Size(bytes).to_string()).into()),
        );
        cells.extend(mode.then(|| row.mode.clone().unwrap_or_default().into()));
        cells.extend([
            Size(row.record_bytes).to_string().into(),
            unit.show(row.a_s).into(),
            unit.show(row.b_s).into(),
            TableCell::new(ratio(row.ratio.value), emphasis),
            interval(&row.ratio).into(),
            TableCell::new(word, emphasis),
        ]);
        cells
    };
    let row = |row: &&ComparedRow| TableRow { cells: cells(row), ..TableRow::default() };
    Table { columns, rows: rows.iter().map(row).collect(), ..Table::default() }
}

/// Returns the interval of a ratio for a table, or why there is none.
pub(super) fn interval(ratio: &Ratio) -> String {
    match ratio.n {
        1 => "one round: no interval".into(),
        n if !ratio.has_interval() => format!("{n} rounds: no interval"),
        _ => format!("[{:.2}, {:.2}]", ratio.ci95[0], ratio.ci95[1]),
    }
}

pub(super) fn verdict(ratio: &Ratio, verdict: ComparisonVerdict) -> (&'static str, Emphasis) {
    match verdict {
        _ if !ratio.has_interval() => ("not judged", Emphasis::Faint),
        ComparisonVerdict::Faster => ("faster", Emphasis::Good),
        ComparisonVerdict::Slower => ("slower", Emphasis::Bad),
        ComparisonVerdict::Tie => ("tie", Emphasis::Faint),
    }
}

const HEAD: [&str; 18] = [
    "workload",
    "method",
    "record_bytes",
    "buffer_bytes",
    "mode",
    "bytes",
    "fs",
    "dir",
    "cache",
    "sync",
    "advice",
    "a_s",
    "b_s",
    "ratio",
    "ratio_ci95_low",
    "ratio_ci95_high",
    "pairs",
    "verdict",
];

/// Returns a comparison as CSV: one line for each row of both runs.
pub fn csv_compare(comparison: &BenchComparison) -> String {
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    let record = |row: &ComparedRow| {
        let key = &row.group;
        let end = |at: usize| or_empty(row.ratio.has_interval().then(|| row.ratio.ci95[at].to_string()));
        vec![
            key.workload.clone(),
            row.method.clone(),
            row.record_bytes.to_string(),
            or_empty(row.buffer_bytes.map(|bytes| bytes.to_string())),
            or_empty(row.mode.clone()),
            key.bytes.to_string(),
            key.fs.clone(),
            key.dir.clone(),
            key.cache.clone(),
            key.sync.clone(),
            or_empty(key.advice.clone()),
            row.a_s.to_string(),
            row.b_s.to_string(),
            row.ratio.value.to_string(),
            end(0),
            end(1),
            row.ratio.n.to_string(),
            verdict(&row.ratio, row.verdict).0.into(),
        ]
    };
    crate::csv::text(&HEAD, comparison.rows.iter().map(record))
}
