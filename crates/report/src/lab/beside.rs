//! A published table beside this machine's figures.

use weir_model::distinct;
use weir_model::duration::three_digits;
use weir_model::lab::{PublishedFigure, PublishedTable};
use weir_model::number::thousands;

use crate::block::Block;
use crate::number::ABSENT;
use crate::style::Style;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};
use crate::terminal::INDENT;

/// Figures to show on a narrow terminal, in order of preference.
const FIRST: [&str; 2] = ["median", "elapsed"];

/// Returns the table with its source; `brief` leaves out the published system. With the style of a terminal it names the
/// figures that have no room there. Nothing if this machine has no figure.
pub(super) fn blocks(published: &PublishedTable, brief: bool, terminal: Option<&Style>) -> Vec<Block> {
    let measured: Vec<&PublishedFigure> =
        published.rows.iter().filter(|one| is_measured(published, one)).collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Title(format!("Published beside ours: {}", published.id))];
    blocks.push(Block::Aside(published.title.clone()));
    if !brief {
        blocks.push(Block::Aside(format!("theirs: {}", published.setting)));
    }
    blocks.push(Block::Aside(format!("source: {}", published.source)));
    blocks.push(Block::Aside(format!("ours: {}", published.here)));
    let table = table(&measured);
    let hidden = terminal.map(|style| table.hidden(INDENT, style).join(", ")).unwrap_or_default();
    blocks.push(Block::Table(table));
    if !hidden.is_empty() {
        blocks.push(Block::Aside(format!(
            "not shown for lack of room: {hidden}; a wider terminal or --json has them"
        )));
    }
    blocks
}

/// Returns whether this machine has a figure in the same row.
fn is_measured(published: &PublishedTable, figure: &PublishedFigure) -> bool {
    published.rows.iter().any(|one| one.row == figure.row && one.ours.is_some())
}

fn table(figures: &[&PublishedFigure]) -> Table {
    let names = distinct(figures.iter().map(|one| one.figure.as_str()));
    let first = FIRST.iter().find(|name| names.contains(name)).unwrap_or(&names[0]);
    let mut columns = vec![Column::new("", "", Align::Left)];
    for (at, name) in names.iter().enumerate() {
        let unit = figures.iter().find(|one| one.figure == *name).map_or("", |one| &one.unit);
        let priority =
            if name == first { ColumnPriority::Always } else { ColumnPriority::Rank(at as u8 + 1) };
        let head = if unit == "s" || unit == "us" {
            format!("{name} {}", unit.replace('u', "µ"))
        } else {
            (*name).into()
        };
        columns.push(Column::new(&head, "theirs", Align::Decimal).priority(priority));
        columns.push(Column::new("", "ours", Align::Decimal).priority(priority));
    }
    let row = |label: &str| {
        let of = |name: &&str| figures.iter().find(|one| one.row == label && one.figure == **name);
        let cells = names.iter().flat_map(|name| {
            let figure = of(name);
            let scaled = if figure.is_some_and(|one| one.scaled) { "~" } else { "" };
            let shown = |value: Option<f64>| TableCell::from(value.map_or(ABSENT.into(), number));
            [
                shown(figure.and_then(|one| one.published)),
                shown(figure.and_then(|one| one.ours)).marked(scaled),
            ]
        });
        TableRow { cells: std::iter::once(label.into()).chain(cells).collect(), ..TableRow::default() }
    };
    let labels = distinct(figures.iter().map(|one| one.row.as_str()));
    Table { columns, rows: labels.into_iter().map(row).collect(), ..Table::default() }
}

/// Returns a count with all digits, a measured value with three.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { thousands(value as u64) } else { three_digits(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;

    fn figure(row: &str, name: &str, published: Option<f64>, ours: Option<f64>) -> PublishedFigure {
        let unit = "s".to_string();
        PublishedFigure {
            row: row.into(),
            figure: name.into(),
            unit,
            published,
            ours,
            runs: Some(20),
            scaled: row == "1 B",
        }
    }

    fn table() -> PublishedTable {
        let figures =
            [("elapsed", 107.43, 50.25), ("cpu", 107.32, 50.0), ("user", 8.2, 5.0), ("system", 99.12, 45.0)];
        let of = |row: &'static str, ours: bool| {
            figures.map(|(name, theirs, seconds)| figure(row, name, Some(theirs), ours.then_some(seconds)))
        };
        PublishedTable {
            id: "tlpi-13-1".into(),
            title: "Copy a file".into(),
            source: "a book".into(),
            setting: "a disk".into(),
            here: "ext4, median of 20 runs".into(),
            rows: [of("1 B", true), of("2 B", false)].concat(),
        }
    }

    #[test]
    fn theirs_and_ours_stand_side_by_side_on_80_columns() {
        let text = terminal::text(&blocks(&table(), true, Some(&Style::default())), &Style::default());
        let row = text.lines().find(|line| line.trim_start().starts_with("1 B")).expect("the row");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(&words[2..5], ["107", "50.2~", "107"], "{text}");
        assert!(text.contains("system s") && text.contains("theirs") && text.contains("ours"), "{text}");
        assert!(!text.contains("2 B"), "a row that was not measured: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn figures_without_room_are_named() {
        let style = Style { width: 40, ..Style::default() };
        let text = terminal::text(&blocks(&table(), true, Some(&style)), &style);
        assert!(text.contains("not shown for lack of room: ") && text.contains("system"), "{text}");
        let wide = Style { width: 120, ..style };
        assert!(!terminal::text(&blocks(&table(), true, Some(&wide)), &wide).contains("not shown"));
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!([5e6, 0.0, 1.532, 107.43].map(number), ["5,000,000", "0", "1.53", "107"]);
    }

    #[test]
    fn unmeasured_tables_are_not_shown() {
        let mut table = table();
        table.rows.iter_mut().for_each(|one| one.ours = None);
        assert!(blocks(&table, false, None).is_empty());
    }
}
