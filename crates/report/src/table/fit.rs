//! Selects the columns that fit the width of the terminal.

use super::{Align, ColumnPriority, Table};
use crate::style::Style;
use crate::text::{clean, shorten, shorten_front, width};

/// Spaces between two columns of the table.
pub(super) const GAP: usize = 2;
/// Smallest and largest width of a bar in characters.
const BAR: [usize; 2] = [8, 24];
/// Smallest width that words are shortened to, and the smallest one if the table is still too wide: a line that the terminal
/// breaks is worse than a name that is hard to recognize.
const SHORTEST_WORDS: [usize; 2] = [6, 2];
/// Paths are shortened to this width before a column is left out.
const SHORT_PATH: usize = 12;

/// Shortens a text to a number of columns.
type Cut = fn(&str, usize, &Style) -> String;

/// The visible part of a table.
pub(super) struct Fitted {
    pub columns: Vec<FittedColumn>,
    /// Free characters after the last column, for bars and remarks.
    pub room: usize,
    /// Width of the longest bar; 0 without bars.
    pub bar_cells: usize,
}

/// A column that fits the screen width.
pub(super) struct FittedColumn {
    /// Index in [`Table::columns`].
    pub index: usize,
    pub head: [String; 2],
    pub texts: Vec<String>,
    pub width: usize,
}

/// Returns the width of `columns`, each with a gap after it.
fn taken(columns: &[FittedColumn]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum()
}

impl Table {
    fn shown(&self, index: usize, style: &Style) -> FittedColumn {
        let column = &self.columns[index];
        let cells = self.rows.iter().filter_map(|row| row.cells.get(index));
        let texts = super::cells::texts(cells, column.align, style);
        let head = [&column.head, &column.unit].map(|text| clean(text, style));
        let width = texts.iter().chain(&head).map(|text| width(text)).max().unwrap_or(0);
        FittedColumn { index, head, texts, width }
    }

    /// Returns the width that the shortest form of every remark needs.
    fn remark_width(&self, style: &Style) -> usize {
        let shortest =
            |row: &super::TableRow| row.remarks.last().map_or(0, |text| width(&clean(text, style)));
        self.rows.iter().map(shortest).max().unwrap_or(0)
    }

    fn rank(&self, column: &FittedColumn) -> u8 {
        match self.columns[column.index].priority {
            ColumnPriority::Rank(rank) => rank,
            ColumnPriority::Always | ColumnPriority::UnlessHeaded => 0,
        }
    }

    /// Selects the columns that fit after `indent`, by priority.
    pub(super) fn fit(&self, indent: usize, style: &Style) -> Fitted {
        let (mut columns, mut dropped): (Vec<FittedColumn>, Vec<FittedColumn>) = (0..self.columns.len())
            .filter(|&index| self.may_show(&self.columns[index]))
            .map(|index| self.shown(index, style))
            .partition(|column| self.rank(column) == 0);
        let remark = self.remark_width(style);
        let spared = columns.iter().map(|column| column.width - self.wanted(column)).sum::<usize>();
        let mut used = indent + taken(&columns) + remark - spared;
        let space = usize::from(remark > 0); // between a bar and the remark after it
        let mut bars = false;
        for rank in self.ranks(&dropped) {
            let (added, rest): (Vec<FittedColumn>, Vec<FittedColumn>) =
                dropped.into_iter().partition(|column| self.rank(column) == rank);
            let adds_bars = self.bars.as_ref().is_some_and(|bars| bars.rank == rank);
            let more = taken(&added) + if adds_bars { BAR[0] + space } else { 0 };
            dropped = rest;
            // Without bars and remarks, the last column needs no gap after it.
            let spare = if bars || adds_bars || remark > 0 { 0 } else { GAP };
            if used + more <= style.width + spare {
                used += more;
                bars |= adds_bars;
                columns.extend(added);
            }
        }
        columns.sort_by_key(|column| column.index);
        self.shorten_words(&mut columns, (used + spared).saturating_sub(style.width + GAP), style);
        let room = style.width.saturating_sub(indent + taken(&columns));
        let bar_cells = if bars { room.saturating_sub(remark + space).clamp(BAR[0], BAR[1]) } else { 0 };
        Fitted { columns, room, bar_cells }
    }

    /// Returns the ranks in use, highest priority first.
    fn ranks(&self, columns: &[FittedColumn]) -> Vec<u8> {
        let bars = self.bars.iter().map(|bars| bars.rank);
        let mut ranks: Vec<u8> = columns.iter().map(|column| self.rank(column)).chain(bars).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Returns the width that a column needs before columns of lower priority are shown.
    fn wanted(&self, column: &FittedColumn) -> usize {
        let path = self.columns[column.index].align == Align::Path;
        if path { column.width.min(SHORT_PATH) } else { column.width }
    }

    /// Makes the widest column of paths narrower by `over` characters, then the widest of words, as far as possible.
    fn shorten_words(&self, columns: &mut [FittedColumn], over: usize, style: &Style) {
        let cuts: [(Align, Cut); 2] = [(Align::Path, shorten_front), (Align::Left, shorten)];
        let mut over = over;
        for (least, (align, cut)) in SHORTEST_WORDS.into_iter().flat_map(|least| cuts.map(|cut| (least, cut)))
        {
            let words = columns.iter_mut().filter(|column| self.columns[column.index].align == align);
            let Some(widest) = words.max_by_key(|column| column.width).filter(|_| over > 0) else { continue };
            let width = widest.width.saturating_sub(over).max(least.min(widest.width));
            over -= widest.width - width;
            widest.width = width;
            for text in widest.texts.iter_mut().chain(&mut widest.head) {
                *text = cut(text, width, style);
            }
        }
    }
}
