//! The overview of many groups: one row for each.

use weir_model::bench::GroupKey;
use weir_model::duration::{format_seconds, three_digits};
use weir_model::{CostModel, Size};

use super::section::Section;
use super::{labels, lead};
use crate::block::Block;
use crate::number::ABSENT;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};

/// Returns a title and one table with a row for each of the `sections`.
pub(super) fn blocks(sections: &[Section]) -> Vec<Block> {
    let right = |head: &str, unit: &str| Column::new(head, unit, Align::Right);
    let price =
        |head: &str, unit: &str| Column::new(head, unit, Align::Decimal).priority(ColumnPriority::Rank(1));
    let keys: Vec<&GroupKey> = sections.iter().map(Section::key).collect();
    let columns = vec![
        Column::new("group", "", Align::Left),
        right("smallest", "record").priority(ColumnPriority::Rank(2)),
        right("smallest", "elapsed"),
        right("knee", ""),
        right("best", "elapsed"),
        price("call", "ns"),
        price("byte", "ns"),
        price("sync", "µs"),
    ];
    let rows = sections.iter().map(|section| row(section, &keys)).collect();
    vec![Block::Title("All groups".into()), Block::Table(Table { columns, rows, ..Table::default() })]
}

fn row(section: &Section, keys: &[&GroupKey]) -> TableRow {
    // The smallest record of the method whose curve the group shows; without a curve, of all methods.
    let smallest =
        lead::smallest(section).or_else(|| section.measured().min_by_key(|(row, _)| row.record_bytes));
    // A price of 0 means that the model has no such term, for example no sync.
    let price = |price: fn(&CostModel) -> f64, unit: f64| {
        section.group.model.as_ref().map(price).filter(|ns| *ns > 0.0).map(|ns| three_digits(ns / unit))
    };
    let cells = [
        Some(labels::difference(section.key(), keys)),
        smallest.map(|(row, _)| Size(row.record_bytes).to_string()),
        smallest.map(|(_, seconds)| format_seconds(seconds)),
        section.knee().map(|knee| Size(knee.bytes).to_string()),
        section.best().map(|(_, seconds)| format_seconds(seconds)),
        price(|model| model.call_ns, 1.0),
        price(|model| model.byte_ns, 1.0),
        price(|model| model.sync_ns, 1e3),
    ];
    let cell = |text: Option<String>| TableCell::from(text.unwrap_or(ABSENT.into()));
    TableRow { cells: cells.into_iter().map(cell).collect(), ..TableRow::default() }
}
