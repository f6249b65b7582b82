//! Which columns there is room for.

use super::{Align, Keep, Table};
use crate::style::Style;
use crate::text::{clean, shorten, width};

/// Columns between two columns of the table.
pub(super) const GAP: usize = 2;
/// Fewest and most cells of a bar that is worth drawing.
const BAR: [usize; 2] = [8, 24];
/// A word shortened further than this says nothing.
const SHORTEST_WORD: usize = 6;

/// What is shown of a table.
pub(super) struct Fitted {
    /// For each column its index, head, unit and aligned cells.
    pub columns: Vec<Shown>,
    /// Columns behind the last one, for bars and remarks.
    pub room: usize,
    /// Most cells of a bar; 0: no bars.
    pub bar_cells: usize,
}

/// One column that is shown.
pub(super) struct Shown {
    pub index: usize,
    pub head: [String; 2],
    pub texts: Vec<String>,
    pub width: usize,
}

/// What `columns` take, each with a gap behind it.
fn taken(columns: &[Shown]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum()
}

impl Table {
    fn shown(&self, index: usize, style: &Style) -> Shown {
        let column = &self.columns[index];
        let cells = self.rows.iter().filter_map(|row| row.cells.get(index));
        let texts = super::cells::texts(cells, column.align, style);
        let head = [&column.head, &column.unit].map(|text| clean(text, style));
        let width = texts.iter().chain(&head).map(|text| width(text)).max().unwrap_or(0);
        Shown { index, head, texts, width }
    }

    /// Columns that the shortest remark needs.
    fn remark_width(&self, style: &Style) -> usize {
        let shortest = |row: &super::Row| row.remarks.last().map_or(0, |text| width(&clean(text, style)));
        self.rows.iter().map(shortest).max().unwrap_or(0)
    }

    fn rank(&self, column: &Shown) -> u8 {
        match self.columns[column.index].keep {
            Keep::Rank(rank) => rank,
            Keep::Always | Keep::UnlessHeaded => 0,
        }
    }

    /// Takes what there is room for behind `indent`, the dearest first.
    pub(super) fn fit(&self, indent: usize, style: &Style) -> Fitted {
        let (mut columns, mut dropped): (Vec<Shown>, Vec<Shown>) = (0..self.columns.len())
            .filter(|&index| self.may_show(&self.columns[index]))
            .map(|index| self.shown(index, style))
            .partition(|column| self.rank(column) == 0);
        let remark = self.remark_width(style);
        let mut used = indent + taken(&columns) + remark;
        let space = usize::from(remark > 0); // between a bar and the remark behind it
        let mut bars = false;
        for rank in self.ranks(&dropped) {
            let (added, rest): (Vec<Shown>, Vec<Shown>) =
                dropped.into_iter().partition(|column| self.rank(column) == rank);
            let adds_bars = self.bars.as_ref().is_some_and(|bars| bars.rank == rank);
            let more = taken(&added) + if adds_bars { BAR[0] + space } else { 0 };
            dropped = rest;
            // Without bars and remarks behind it, the last column needs no gap.
            let spare = if bars || adds_bars || remark > 0 { 0 } else { GAP };
            if used + more <= style.width + spare {
                used += more;
                bars |= adds_bars;
                columns.extend(added);
            }
        }
        columns.sort_by_key(|column| column.index);
        self.shorten_words(&mut columns, used.saturating_sub(style.width + GAP), style);
        let room = style.width.saturating_sub(indent + taken(&columns));
        let bar_cells = if bars { room.saturating_sub(remark + space).clamp(BAR[0], BAR[1]) } else { 0 };
        Fitted { columns, room, bar_cells }
    }

    /// The ranks there are, the dearest first.
    fn ranks(&self, columns: &[Shown]) -> Vec<u8> {
        let bars = self.bars.iter().map(|bars| bars.rank);
        let mut ranks: Vec<u8> = columns.iter().map(|column| self.rank(column)).chain(bars).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Takes `over` columns from the widest column of words, as far as it goes.
    fn shorten_words(&self, columns: &mut [Shown], over: usize, style: &Style) {
        let words = columns.iter_mut().filter(|column| self.columns[column.index].align == Align::Left);
        let Some(widest) = words.max_by_key(|column| column.width) else { return };
        if over > 0 {
            widest.width = widest.width.saturating_sub(over).max(SHORTEST_WORD.min(widest.width));
            for text in widest.texts.iter_mut().chain(&mut widest.head) {
                *text = shorten(text, widest.width, style);
            }
        }
    }
}
