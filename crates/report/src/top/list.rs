//! Draws the list of processes on the live screen. Columns have fixed widths, so that they do not move between surveys.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style as CellStyle};
use weir_model::top::ProcessActivity;

use super::TopView;
use super::labels::{age, calls, location, pending, pid, share, size, tiny};
use super::order::Sort;
use crate::text::{clean, shorten, shorten_front, width};

/// A column of the list.
struct ListColumn {
    head: &'static str,
    width: usize,
    sort: Option<Sort>,
    /// Smallest width of the screen that shows the column.
    from: usize,
    kind: Kind,
    text: fn(&ProcessActivity) -> String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// Grows with the screen; keeps the beginning of a text that is too long.
    Words,
    /// Grows with the screen; keeps the end of a path that is too long.
    Path,
}

const fn number(
    head: &'static str,
    width: usize,
    sort: Option<Sort>,
    from: usize,
    text: fn(&ProcessActivity) -> String,
) -> ListColumn {
    ListColumn { head, width, sort, from, kind: Kind::Number, text }
}

const COLUMNS: [ListColumn; 11] = [
    number("PID", 8, Some(Sort::Pid), 0, |one| {
        let (number, mark) = pid(one);
        format!("{number}{}", if mark.is_empty() { " " } else { mark })
    }),
    ListColumn {
        head: "COMMAND",
        width: 10,
        sort: None,
        from: 0,
        kind: Kind::Words,
        text: |one| one.command.to_string(),
    },
    number("TINY/s", 6, Some(Sort::Tiny), 80, tiny),
    number("READ/s", 6, Some(Sort::Reads), 0, |one| calls(one.reads)),
    number("WRITE/s", 7, Some(Sort::Writes), 0, |one| calls(one.writes)),
    number("A CALL", 8, Some(Sort::Size), 0, |one| size(one.calls())),
    number("SYS%", 4, Some(Sort::System), 0, |one| share(one.system_share)),
    number("USR%", 4, None, 100, |one| share(one.user_share)),
    number("PENDING", 8, Some(Sort::Pending), 0, pending),
    number("AGE", 5, Some(Sort::Age), 0, age),
    ListColumn { head: "WHERE", width: 9, sort: None, from: 0, kind: Kind::Path, text: location },
];

/// Spaces between two columns.
const GAP: usize = 1;

/// Returns the visible columns with their widths.
fn fit(room: usize) -> Vec<(&'static ListColumn, usize)> {
    let mut shown: Vec<(&ListColumn, usize)> =
        COLUMNS.iter().filter(|column| column.from <= room).map(|column| (column, column.width)).collect();
    let used: usize = shown.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP);
    let mut left = room.saturating_sub(used);
    // Columns of words and of paths share the remaining width equally.
    let wide = shown.iter().filter(|(column, _)| column.kind != Kind::Number).count();
    for (nth, (_, width)) in shown.iter_mut().filter(|(column, _)| column.kind != Kind::Number).enumerate() {
        let part = left / (wide - nth);
        *width += part;
        left -= part;
    }
    shown
}

/// Draws the head and the first of `rows` that fit.
pub(super) fn draw(view: &TopView, rows: &[&ProcessActivity], area: Rect, buffer: &mut Buffer) {
    let columns = fit(usize::from(area.width));
    let bold = CellStyle::new().add_modifier(Modifier::BOLD);
    let (mut x, y) = (area.x, area.y);
    for (column, width) in &columns {
        let sorted = column.sort == Some(view.selection.sort);
        let style = if sorted { bold.add_modifier(Modifier::UNDERLINED) } else { bold };
        let head = shorten(column.head, *width, &view.style);
        let pad = if column.kind == Kind::Number { width - self::width(&head) } else { 0 };
        buffer.set_string(x + pad as u16, y, &head, style);
        x += (width + GAP) as u16;
    }
    for (line, one) in rows.iter().take(usize::from(area.height.saturating_sub(1))).enumerate() {
        row(view, one, &columns, Rect::new(area.x, y + 1 + line as u16, area.width, 1), buffer);
    }
}

fn row(
    view: &TopView,
    one: &ProcessActivity,
    columns: &[(&ListColumn, usize)],
    area: Rect,
    buffer: &mut Buffer,
) {
    let mut x = area.x;
    for (column, width) in columns {
        let text = clean(&(column.text)(one), &view.style);
        let text = match column.kind {
            Kind::Path => shorten_front(&text, *width, &view.style),
            _ => shorten(&text, *width, &view.style),
        };
        let pad = if column.kind == Kind::Number { width.saturating_sub(self::width(&text)) } else { 0 };
        buffer.set_string(x + pad as u16, area.y, &text, CellStyle::new());
        x += (width + GAP) as u16;
    }
    if view.selected == Some(one.pid) {
        buffer.set_style(area, CellStyle::new().add_modifier(Modifier::REVERSED));
    } else if one.foreign {
        buffer.set_style(area, CellStyle::new().add_modifier(Modifier::DIM));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_take_the_whole_width_and_no_more() {
        for room in 80..200 {
            let used: usize = fit(room).iter().map(|(_, width)| width + GAP).sum::<usize>() - GAP;
            assert_eq!(used, room);
        }
        assert!(fit(10).len() > 3, "a narrow screen is cut by the buffer, not by a panic");
        assert_eq!((fit(60).len(), fit(80).len(), fit(120).len()), (9, 10, 11));
        let sortable = |room| {
            Sort::ALL.iter().all(|&sort| fit(room).iter().any(|(column, _)| column.sort == Some(sort)))
        };
        assert!(sortable(80), "the list has each column that it can be sorted by");
    }
}
