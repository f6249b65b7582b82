//! Published figures beside this machine's.

use weir_model::Size;
use weir_model::bench::{PublishedComparison, PublishedRow};

use crate::block::Block;
use crate::number::{ABSENT, TimeUnit, ratio};
use crate::table::{Align, Column, Table, TableCell, TableRow};

/// Returns the table, its source and the conclusions.
pub(super) fn blocks(published: &PublishedComparison) -> Vec<Block> {
    let mut blocks = table_blocks(published);
    blocks.extend(verdict(published));
    blocks
}

/// Returns the conclusions, each sentence as a paragraph.
pub(super) fn verdict(published: &PublishedComparison) -> impl Iterator<Item = Block> {
    published.verdict.iter().cloned().map(Block::Text)
}

/// Returns the table and its source, after a title.
pub(super) fn table_blocks(published: &PublishedComparison) -> Vec<Block> {
    vec![
        Block::Title(format!("Published beside ours: {}", published.id)),
        Block::Aside(published.title.clone()),
        Block::Aside(published.source.clone()),
        Block::Aside(published.setting.clone()),
        Block::Table(table(&published.rows)),
    ]
}

fn table(rows: &[PublishedRow]) -> Table {
    let theirs = TimeUnit::for_values(rows.iter().map(|row| row.theirs_s));
    let ours = TimeUnit::for_values(rows.iter().filter_map(|row| row.ours_s));
    let several = rows.iter().any(|row| row.method != rows[0].method);
    let mut columns = vec![
        Column::new("record", "", Align::Right),
        Column::new("theirs", theirs.name, Align::Decimal),
        Column::new("ours", ours.name, Align::Decimal),
        Column::new("theirs", "vs best", Align::Right),
        Column::new("ours", "vs best", Align::Right),
    ];
    if several {
        columns.insert(0, Column::new("method", "", Align::Left));
    }
    let row = |row: &PublishedRow| {
        let mut cells: Vec<TableCell> = vec![
            Size(row.record_bytes).to_string().into(),
            theirs.show(row.theirs_s).into(),
            row.ours_s.map_or(ABSENT.into(), |seconds| ours.show(seconds)).into(),
            ratio(row.theirs_vs_best).into(),
            row.ours_vs_best.map_or(ABSENT.into(), ratio).into(),
        ];
        if several {
            cells.insert(0, row.method.as_str().into());
        }
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: rows.iter().map(row).collect(), ..Table::default() }
}
