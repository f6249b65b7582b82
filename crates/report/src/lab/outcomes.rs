//! The table of what is expected and what happens, with the meaning of its marks.

use weir_model::lab::{JudgedPrediction, ObservedValue, PageOutcome};

use crate::style::{Emphasis, Style};
use crate::table::{Align, Column, Table, TableCell, TableRow};
use crate::text::{clean, width, wrap};

/// Indent of a table and spaces between two of its columns on a terminal.
const SPACES: usize = 2;
/// Keeps a mark on the line of the word before it.
const JOINED: &str = "\u{a0}";

/// Returns the table of the outcomes, and the meaning of the marks in it.
pub(super) fn table(outcomes: &[PageOutcome]) -> (Table, Option<String>) {
    let has = |is: fn(&PageOutcome) -> bool| outcomes.iter().any(is);
    let predicted = has(|outcome| outcome.prediction.is_some());
    let expected = has(|outcome| !outcome.expect.is_empty());
    let fixed = has(|outcome| outcome.fixed.is_some());
    let shown =
        [(true, ""), (predicted, "you said"), (expected, "expected"), (true, "happens"), (fixed, "fixed")];
    let columns = shown.iter().filter(|one| one.0).map(|one| Column::new(one.1, "", Align::Left));
    let row = |outcome: &PageOutcome| {
        let cells = [
            outcome.what.clone().into(),
            outcome.prediction.as_ref().map(marked).unwrap_or_default().into(),
            outcome.expect.clone().into(),
            cell(&outcome.broken),
            fixed_cell(&outcome.fixed),
        ];
        let cells = cells.into_iter().zip(&shown).filter(|one| one.1.0).map(|one| one.0);
        TableRow { cells: cells.collect(), ..TableRow::default() }
    };
    let rows: Vec<TableRow> = outcomes.iter().map(row).collect();
    let meaning = meaning(&rows);
    (Table { columns: columns.collect(), headings: Vec::new(), rows, bars: None }, meaning)
}

/// Returns what the marks mean that the rows have.
fn meaning(rows: &[TableRow]) -> Option<String> {
    let marks = [("✓", "as expected"), ("✗", "not as expected"), ("?", "not as the experiment states")];
    let has = |mark: &str| {
        rows.iter().flat_map(|row| &row.cells).any(|cell| cell.text.ends_with(&format!(" {mark}")))
    };
    let meanings: Vec<String> =
        marks.iter().filter(|one| has(one.0)).map(|(mark, meaning)| format!("{mark} {meaning}")).collect();
    (!meanings.is_empty()).then(|| meanings.join(", "))
}

fn marked(prediction: &JudgedPrediction) -> String {
    format!("{} {}", prediction.text, if prediction.is_right { "✓" } else { "✗" })
}

/// Returns a value with its mark. A value without an expectation has none: there is nothing to compare it with.
fn cell(value: &Option<ObservedValue>) -> TableCell {
    let Some(value) = value else { return TableCell::default() };
    let (mark, emphasis) = match (value.agrees, value.expected) {
        (false, _) => (" ?", Emphasis::Bad),
        (true, Some(true)) => (" ✓", Emphasis::Plain),
        (true, Some(false)) => (" ✗", Emphasis::Strong),
        (true, None) => ("", Emphasis::Plain),
    };
    TableCell::new(format!("{}{mark}", value.seen), emphasis)
}

/// Returns the value of the fixed program. A fixed program that does what the experiment states has no cross, also if that is not
/// what one would expect.
fn fixed_cell(value: &Option<ObservedValue>) -> TableCell {
    match value {
        Some(value) if value.agrees && value.expected == Some(false) => value.seen.clone().into(),
        _ => cell(value),
    }
}

/// Returns the table with its texts in several lines, so that all columns fit the terminal. Every column of a comparison is
/// needed: none may be left out, and a cell that is cut loses its mark.
pub(super) fn wrapped(table: Table, style: &Style) -> Table {
    let texts = |column: usize| {
        let cells = table.rows.iter().filter_map(move |row| row.cells.get(column)).map(|cell| &cell.text);
        cells.chain([&table.columns[column].head]).map(|text| joined(text, style)).collect::<Vec<_>>()
    };
    let columns: Vec<Vec<String>> = (0..table.columns.len()).map(texts).collect();
    let widths = fitted(&columns, style.width.saturating_sub(SPACES * columns.len()));
    let lines_of = |row: &TableRow| -> Vec<TableRow> {
        let cell_lines =
            |(cell, wide): (&TableCell, &usize)| wrap(&joined(&cell.text, style), *wide, "", "  ");
        let cells: Vec<Vec<String>> = row.cells.iter().zip(&widths).map(cell_lines).collect();
        let line = |at: usize| {
            let one = |(lines, cell): (&Vec<String>, &TableCell)| {
                let text = lines.get(at).cloned().unwrap_or_default().replace(JOINED, " ");
                TableCell::new(text, cell.emphasis)
            };
            TableRow { cells: cells.iter().zip(&row.cells).map(one).collect(), ..row.clone() }
        };
        (0..cells.iter().map(Vec::len).max().unwrap_or(0)).map(line).collect()
    };
    let rows = table.rows.iter().flat_map(lines_of).collect();
    Table { rows, ..table }
}

/// Returns a text whose mark belongs to its last word.
fn joined(text: &str, style: &Style) -> String {
    let marks = ["✓", "✗", "?"];
    let parts = text.rsplit_once(' ').filter(|(_, last)| marks.contains(last));
    parts.map_or_else(
        || clean(text, style),
        |(words, mark)| format!("{}{JOINED}{}", clean(words, style), clean(mark, style)),
    )
}

/// Returns the widths of columns with these texts in `room`: the widest ones become narrower, to the longest word at most.
fn fitted(columns: &[Vec<String>], room: usize) -> Vec<usize> {
    let most = |texts: &[String], of: fn(&str) -> usize| texts.iter().map(|text| of(text)).max().unwrap_or(0);
    let longest_word =
        |text: &str| wrap(text, 0, "", "").iter().map(|word| width(word)).max().unwrap_or(0) + SPACES;
    let mut widths: Vec<usize> = columns.iter().map(|texts| most(texts, width)).collect();
    let least: Vec<usize> = columns.iter().map(|texts| most(texts, longest_word)).collect();
    while widths.iter().sum::<usize>() > room {
        let can = widths.iter_mut().zip(&least).filter(|(wide, least)| **wide > **least);
        let Some((widest, _)) = can.max_by_key(|one| *one.0) else { break };
        *widest -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(seen: &str, agrees: bool, expected: Option<bool>) -> Option<ObservedValue> {
        Some(ObservedValue { seen: seen.into(), agrees, expected })
    }

    fn outcome() -> PageOutcome {
        PageOutcome {
            what: "promptness: in the file while the program waits".into(),
            expect: "1 line of each of the writers".into(),
            broken: value("0 lines of any of the writers", true, Some(false)),
            fixed: value("1 line of each of the writers", true, Some(true)),
            ..PageOutcome::default()
        }
    }

    #[test]
    fn a_fixed_program_that_does_as_stated_has_no_cross() {
        let shown = |agrees, expected| fixed_cell(&value("100 writes", agrees, expected)).text;
        assert_eq!(shown(true, Some(true)), "100 writes ✓");
        assert_eq!(shown(true, Some(false)), "100 writes", "not as one would expect, but as stated");
        assert_eq!(shown(false, Some(false)), "100 writes ?");
    }

    #[test]
    fn a_value_without_an_expectation_has_no_mark() {
        assert_eq!(cell(&value("whole", true, None)).text, "whole");
        assert_eq!(cell(&value("whole", false, None)).text, "whole ?");
        let outcome =
            PageOutcome { what: "writes".into(), broken: value("7", true, None), ..PageOutcome::default() };
        let (table, meaning) = table(&[outcome]);
        assert_eq!((table.columns.len(), meaning), (2, None), "no column of expectations");
    }

    #[test]
    fn every_column_and_word_is_there_on_80_columns() {
        for (columns, unicode) in [(80, true), (60, true), (80, false)] {
            let style = Style { width: columns, unicode, ..Style::default() };
            let (table, meaning) = table(&[outcome()]);
            let lines = wrapped(table, &style).lines(SPACES, &style);
            assert!(lines[0].contains("expected") && lines[0].contains("happens"), "{lines:#?}");
            assert!(lines.iter().all(|line| width(line) <= columns), "{lines:#?}");
            let text = lines.join(" ");
            for word in ["promptness:", "waits", "writers", style.sign("✗", "x"), style.sign("✓", "+")] {
                assert!(text.contains(word), "{word}: {lines:#?}");
            }
            assert!(!text.contains('…'), "{lines:#?}");
            assert_eq!(meaning.as_deref(), Some("✓ as expected, ✗ not as expected"));
        }
    }

    #[test]
    fn a_table_that_fits_has_one_line_for_each_outcome() {
        let style = Style { width: 200, ..Style::default() };
        assert_eq!(wrapped(table(&[outcome()]).0, &style).rows.len(), 1);
    }
}
