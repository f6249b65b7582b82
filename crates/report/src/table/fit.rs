//! Which columns there is room for.

use super::{Align, Keep, Table};
use crate::style::Style;
use crate::text::{clean, shorten, shorten_front, width};

/// Columns between two columns of the table.
pub(super) const GAP: usize = 2;
/// Fewest and most cells of a bar that is worth drawing.
const BAR: [usize; 2] = [8, 24];
/// A word shortened further than this says nothing.
const SHORTEST_WORD: usize = 6;
/// A path is shortened to this before a column is left out.
const SHORT_PATH: usize = 12;

/// Makes a text fit into some columns.
type Cut = fn(&str, usize, &Style) -> String;

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
        let spared = columns.iter().map(|column| column.width - self.wanted(column)).sum::<usize>();
        let mut used = indent + taken(&columns) + remark - spared;
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
        self.shorten_words(&mut columns, (used + spared).saturating_sub(style.width + GAP), style);
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

    /// What a column must have before others are shown.
    fn wanted(&self, column: &Shown) -> usize {
        let path = self.columns[column.index].align == Align::Path;
        if path { column.width.min(SHORT_PATH) } else { column.width }
    }

    /// Takes `over` columns from the columns of paths, then from the widest of words, as far as it goes.
    fn shorten_words(&self, columns: &mut [Shown], over: usize, style: &Style) {
        let cuts: [(Align, Cut); 2] = [(Align::Path, shorten_front), (Align::Left, shorten)];
        let mut over = over;
        for (align, cut) in cuts {
            let words = columns.iter_mut().filter(|column| self.columns[column.index].align == align);
            let Some(widest) = words.max_by_key(|column| column.width).filter(|_| over > 0) else { continue };
            let width = widest.width.saturating_sub(over).max(SHORTEST_WORD.min(widest.width));
            over -= widest.width - width;
            widest.width = width;
            for text in widest.texts.iter_mut().chain(&mut widest.head) {
                *text = cut(text, width, style);
            }
        }
    }
}
