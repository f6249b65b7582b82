//! Draws a table as lines for a terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table as Grid};

use super::fit::{Fitted, GAP};
use super::{Align, Table, TableRow};
use crate::bar::BarRange;
use crate::style::{Emphasis, Style};
use crate::text::{clean, shorten_front, split, width};

impl Table {
    /// Returns the lines of the table, each indented by `indent`, in at most `style.width` columns if possible.
    pub fn lines(&self, indent: usize, style: &Style) -> Vec<String> {
        let fitted = self.fit(indent, style);
        let grid: Vec<String> = self.grid(&fitted, indent).lines().collect();
        let heads = grid.len().saturating_sub(self.rows.len());
        let range = BarRange::new(self.rows.iter().filter_map(|row| row.bar));
        let mut lines: Vec<String> =
            (0..heads).map(|line| self.head_line(&grid[line], line, &fitted, style)).collect();
        let mut heading = None;
        for (row, line) in self.rows.iter().zip(&grid[heads..]) {
            if row.heading != heading {
                lines.extend(self.heading_line(row, indent, style));
                heading = row.heading;
            }
            let cells = self.paint_cells(row, line, &fitted, indent, style);
            lines.push(format!("{cells}{}", tail(row, range.as_ref(), &fitted, style)).trim_end().into());
        }
        lines
    }

    /// Returns the heads of the columns that [`Table::lines`] leaves out for lack of room.
    pub fn hidden(&self, indent: usize, style: &Style) -> Vec<&str> {
        let shown: Vec<usize> = self.fit(indent, style).columns.iter().map(|column| column.index).collect();
        let hidden = self.columns.iter().enumerate().filter(|(index, _)| !shown.contains(index));
        hidden.map(|(_, column)| column.head.as_str()).filter(|head| !head.is_empty()).collect()
    }

    /// Aligns the plain texts with comfy-table. Emphasis is added later, because comfy-table would count escape
    /// sequences as columns.
    fn grid(&self, fitted: &Fitted, indent: usize) -> Grid {
        let mut grid = Grid::new();
        grid.load_style(NOTHING);
        let two = fitted.columns.iter().any(|column| !column.head[1].is_empty());
        let head = |head: &[String; 2]| if two { head.join("\n") } else { head[0].clone() };
        grid.set_header(fitted.columns.iter().map(|column| head(&column.head)).collect::<Vec<_>>());
        for row in 0..self.rows.len() {
            let text = |texts: &Vec<String>| texts.get(row).cloned().unwrap_or_default();
            grid.add_row(fitted.columns.iter().map(|column| text(&column.texts)).collect::<Vec<_>>());
        }
        for (column, shown) in grid.column_iter_mut().zip(&fitted.columns) {
            let left = if shown.index == fitted.columns[0].index { indent } else { GAP };
            column.set_padding((left as u16, 0));
            column.set_cell_alignment(match self.columns[shown.index].align {
                Align::Left | Align::Path => CellAlignment::Left,
                Align::Right | Align::Decimal => CellAlignment::Right,
            });
        }
        grid
    }

    fn head_line(&self, line: &str, number: usize, fitted: &Fitted, style: &Style) -> String {
        let emphasis = if number == 0 { Emphasis::Strong } else { Emphasis::Faint };
        let bars = self.bars.as_ref().filter(|_| number == 0 && fitted.bar_cells > 0);
        let head = bars.map(|bars| clean(&bars.head, style)).filter(|head| width(head) <= fitted.room);
        let line = match head {
            Some(head) => format!("{line}{}{head}", " ".repeat(GAP)),
            None => line.trim_end().into(),
        };
        style.paint(emphasis, &line)
    }

    fn heading_line(&self, row: &TableRow, indent: usize, style: &Style) -> Option<String> {
        let heading = self.headings.get(row.heading?)?;
        let room = style.width.saturating_sub(indent + if heading.series.is_some() { 2 } else { 0 });
        let text = style.paint(Emphasis::Strong, &fitting(&clean(&heading.text, style), room, style));
        let marker = heading.series.map_or(String::new(), |series| {
            style.paint(Emphasis::Series(series), &crate::plot::marker(series, style).to_string()) + " "
        });
        Some(format!("{}{marker}{text}", " ".repeat(indent)))
    }

    /// Splits a drawn line at its columns and adds each cell's emphasis.
    fn paint_cells(
        &self,
        row: &TableRow,
        line: &str,
        fitted: &Fitted,
        indent: usize,
        style: &Style,
    ) -> String {
        let mut painted = String::new();
        let mut rest = line;
        for (number, column) in fitted.columns.iter().enumerate() {
            let left = if number == 0 { indent } else { GAP };
            let (cell, after) = split(rest, left + column.width);
            let emphasis = row.cells.get(column.index).map_or(Emphasis::Plain, |cell| cell.emphasis);
            painted += &style.paint(emphasis, cell);
            rest = after;
        }
        painted + rest
    }
}

/// Returns a heading in at most `room` columns if possible: its last word, a path, loses its beginning.
fn fitting(text: &str, room: usize, style: &Style) -> String {
    match text.rsplit_once(' ') {
        Some((words, path)) if width(text) > room => {
            format!("{words} {}", shorten_front(path, room.saturating_sub(width(words) + 1), style))
        }
        _ => text.into(),
    }
}

/// Returns the text after the cells of a row: its bar and the longest remark that fits.
fn tail(row: &TableRow, range: Option<&BarRange>, fitted: &Fitted, style: &Style) -> String {
    let bar = match (range, row.bar) {
        (Some(range), Some(value)) => range.bar(value, fitted.bar_cells, style),
        _ => String::new(),
    };
    let room = fitted.room.saturating_sub(width(&bar) + usize::from(!bar.is_empty()));
    let remarks: Vec<String> = row.remarks.iter().map(|text| clean(text, style)).collect();
    let remark = remarks.iter().find(|text| width(text) <= room).or(remarks.last());
    let remark = remark.map_or(String::new(), |text| style.paint(Emphasis::Strong, text));
    let space = if bar.is_empty() || remark.is_empty() { "" } else { " " };
    let bar = style.paint(row.series.map_or(Emphasis::Faint, Emphasis::Series), &bar);
    format!("{}{bar}{space}{remark}", " ".repeat(GAP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Bars, Column, ColumnPriority, Heading, TableCell};

    fn table() -> Table {
        let row = |name: &str, seconds: &str, bar: f64| TableRow {
            cells: vec![name.into(), TableCell::new(seconds, Emphasis::Good), "7".into()],
            bar: Some(bar),
            ..TableRow::default()
        };
        Table {
            columns: vec![
                Column::new("what", "", Align::Left),
                Column::new("elapsed", "s", Align::Decimal),
                Column::new("extra", "", Align::Right).priority(ColumnPriority::Rank(1)),
            ],
            rows: vec![row("slow one", "12.5", 12.5), row("fast", "0.0125", 0.0125)],
            bars: Some(Bars { head: "log".into(), rank: 2 }),
            ..Table::default()
        }
    }

    fn lines(table: &Table, width: usize) -> Vec<String> {
        table.lines(2, &Style { width, ..Style::default() })
    }

    #[test]
    fn aligned_with_units_in_the_head() {
        let head = ["  what      elapsed  extra  log", "                  s"];
        let rows = ["  slow one  12.5        7  ████████", "  fast       0.0125      7  █"];
        let rows = [rows[0].replace("12.5        7", "12.5         7"), rows[1].into()];
        assert_eq!(lines(&table(), 36), [head[0], head[1], &rows[0], &rows[1]]);
    }

    #[test]
    fn columns_without_room_are_left_out_by_rank() {
        let has = |width: usize, text: &str| lines(&table(), width).join("\n").contains(text);
        assert!(has(40, "█") && has(40, "extra"));
        assert!(!has(30, "█") && has(30, "extra"));
        assert!(!has(20, "extra") && has(20, "elapsed"));
        assert!(lines(&table(), 17).iter().all(|line| width(line) <= 17), "{:#?}", lines(&table(), 17));
    }

    #[test]
    fn headings_stand_above_their_rows_once() {
        let mut table = table();
        table.headings = vec![Heading { text: "both".into(), series: Some(0) }];
        table.rows.iter_mut().for_each(|row| row.heading = Some(0));
        let lines = lines(&table, 60);
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[2], "  ● both");
    }

    #[test]
    fn a_heading_with_a_long_path_keeps_its_end() {
        let mut table = table();
        let text = format!("sort 7 fd 3 > /tmp/{}/end.txt", "long/".repeat(20));
        table.headings = vec![Heading { text, series: None }];
        table.rows.iter_mut().for_each(|row| row.heading = Some(0));
        let lines = lines(&table, 60);
        assert!(lines[2].starts_with("  sort 7 fd 3 > …") && lines[2].ends_with("/end.txt"), "{lines:#?}");
        // The cut is before a component of the path.
        assert!((55..=60).contains(&width(&lines[2])) && lines[2].contains("…/long/"), "{lines:#?}");
    }

    #[test]
    fn a_remark_takes_the_longest_form_that_fits() {
        let mut table = table();
        table.rows[1].remarks = vec!["◀ here it is".into(), "◀".into()];
        assert!(lines(&table, 80)[3].ends_with("█ ◀ here it is"));
        assert!(lines(&table, 38)[3].ends_with("█ ◀"), "{:#?}", lines(&table, 38));
        assert!(lines(&table, 29)[3].ends_with("7  ◀"), "{:#?}", lines(&table, 29));
    }

    #[test]
    fn emphasis_changes_no_column() {
        let colour = Style { colour: true, ..Style::default() };
        let painted = table().lines(2, &colour).join("\n");
        assert!(painted.contains("\u{1b}[1m\u{1b}[32m12.5\u{1b}[0m"), "{painted:?}");
        let bare: String = painted
            .split('\u{1b}')
            .enumerate()
            .map(|(i, part)| {
                if i == 0 {
                    part.into()
                } else {
                    part.split_once('m').map_or("", |(_, text)| text).to_string()
                }
            })
            .collect();
        assert_eq!(bare, lines(&table(), 80).join("\n"));
    }

    #[test]
    fn an_empty_table_is_its_head() {
        let empty = Table { rows: vec![], ..table() };
        assert_eq!(lines(&empty, 80).len(), 2);
        assert!(Table::default().lines(2, &Style::default()).len() <= 1);
    }

    #[test]
    fn a_wide_table_gets_no_line_that_the_terminal_breaks() {
        let columns = vec![
            Column::new("process", "", Align::Left),
            Column::new("fd", "", Align::Right),
            Column::new("stream", "", Align::Path),
            Column::new("calls", "", Align::Right),
            Column::new("time %", "", Align::Decimal),
        ];
        let cells = ["python3 12345", "3", "/tmp/out", "4,999,999,998*", "97"].map(TableCell::from);
        let rows = vec![TableRow { cells: cells.into(), ..TableRow::default() }];
        let lines = lines(&Table { columns, rows, ..Table::default() }, 40);
        assert!(lines.iter().all(|line| width(line) <= 40) && lines[0].ends_with("time %"), "{lines:#?}");
    }
}
