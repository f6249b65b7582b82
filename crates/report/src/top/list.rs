//! Draws the list of processes on the live screen. Columns have fixed widths, so that they do not move between surveys.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style as CellStyle};
use weir_model::top::ProcessActivity;

use super::TopView;
use super::labels::{age, calls, location, pending, pid, share, size, tiny};
use super::order::Sort;
use crate::style::Style;
use crate::text::{clean, shorten, shorten_front, width};

/// A column of the list.
struct ListColumn {
    head: &'static str,
    width: usize,
    sort: Option<Sort>,
    /// Columns of a higher rank are left out first; 0: never.
    rank: u8,
    /// Smallest width of the screen that shows the column.
    from: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Number(fn(&ProcessActivity) -> String),
    /// Grows with the screen.
    Command,
    /// Grows with the screen; keeps the end of a path that is too long.
    Path(fn(&ProcessActivity) -> String),
}

const fn number(
    head: &'static str,
    width: usize,
    sort: Option<Sort>,
    rank: u8,
    text: fn(&ProcessActivity) -> String,
) -> ListColumn {
    ListColumn { head, width, sort, rank, from: 0, kind: Kind::Number(text) }
}

const COLUMNS: [ListColumn; 11] = [
    number("PID", 8, Some(Sort::Pid), 0, |one| {
        let (number, mark) = pid(one);
        format!("{number}{}", if mark.is_empty() { " " } else { mark })
    }),
    ListColumn { head: "COMMAND", width: 10, sort: None, rank: 0, from: 0, kind: Kind::Command },
    number("TINY/s", 6, Some(Sort::Tiny), 2, tiny),
    number("READ/s", 6, Some(Sort::Reads), 4, |one| calls(one.reads)),
    number("WRITE/s", 7, Some(Sort::Writes), 4, |one| calls(one.writes)),
    number("A CALL", 8, Some(Sort::Size), 6, |one| size(one.calls())),
    number("SYS%", 4, Some(Sort::System), 7, |one| share(one.system_share)),
    // COMMAND and WHERE need the space of narrower screens.
    ListColumn { from: 100, ..number("USR%", 4, None, 8, |one| share(one.user_share)) },
    number("PENDING", 8, Some(Sort::Pending), 1, pending),
    number("AGE", 5, Some(Sort::Age), 3, age),
    ListColumn { head: "WHERE", width: 9, sort: None, rank: 5, from: 0, kind: Kind::Path(location) },
];

/// Spaces between two columns.
const GAP: usize = 1;
/// Smallest width of COMMAND that says more than a part of a name.
const MIN_COMMAND: usize = 4;
/// Smallest width in which a command that is too long shows arguments; in less, the name of the program says more.
const MIN_ARGUMENTS: usize = 20;

impl ListColumn {
    fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number(_))
    }
}

/// Returns the visible columns with their widths. The column that the list is sorted by is always one of them; the others are
/// left out by rank if there is no room.
fn fit(room: usize, sort: Sort) -> Vec<(&'static ListColumn, usize)> {
    let rank = |column: &ListColumn| if column.sort == Some(sort) { 0 } else { column.rank };
    let mut order: Vec<usize> = (0..COLUMNS.len()).filter(|&at| COLUMNS[at].from <= room).collect();
    order.sort_by_key(|&at| rank(&COLUMNS[at]));
    let mut used = 0;
    let fits = |at: &usize| {
        used += COLUMNS[*at].width + GAP;
        rank(&COLUMNS[*at]) == 0 || used - GAP <= room
    };
    let mut shown: Vec<usize> = order.into_iter().take_while(fits).collect();
    shown.sort_unstable();
    stretched(shown.into_iter().map(|at| (&COLUMNS[at], COLUMNS[at].width)).collect(), room)
}

/// Returns the columns with widths that fill the screen: those of words and of paths share the remaining width equally. On a
/// screen that is too narrow, the command loses width.
fn stretched(mut shown: Vec<(&'static ListColumn, usize)>, room: usize) -> Vec<(&'static ListColumn, usize)> {
    let used: usize = shown.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP);
    let mut left = room.saturating_sub(used);
    let mut over = used.saturating_sub(room);
    let wide = shown.iter().filter(|(column, _)| !column.is_number()).count();
    for (nth, (_, width)) in shown.iter_mut().filter(|(column, _)| !column.is_number()).enumerate() {
        let part = left / (wide - nth);
        let lost = over.min(*width);
        *width = *width + part - lost;
        (left, over) = (left - part, over - lost);
    }
    shown.retain(|(column, width)| column.is_number() || *width >= MIN_COMMAND);
    shown
}

/// Returns the command in at most `room` columns. A command that is too long loses the directory of its program; if there is no
/// room for arguments either, the name of the process replaces it.
fn command(one: &ProcessActivity, room: usize, style: &Style) -> String {
    let command = clean(&one.command.to_string(), style);
    if width(&command) <= room {
        return command;
    }
    if room < MIN_ARGUMENTS {
        return shorten(&clean(&one.comm.to_string(), style), room, style);
    }
    let program = command.split(' ').next().unwrap_or_default();
    let directory = if program.starts_with('/') { program.rfind('/').map_or(0, |at| at + 1) } else { 0 };
    shorten(&command[directory..], room, style)
}

/// Draws the head and the first of `rows` that fit.
pub(super) fn draw(view: &TopView, rows: &[&ProcessActivity], area: Rect, buffer: &mut Buffer) {
    let columns = fit(usize::from(area.width), view.selection.sort);
    let bold = CellStyle::new().add_modifier(Modifier::BOLD);
    let (mut x, y) = (area.x, area.y);
    for (column, width) in &columns {
        let sorted = column.sort == Some(view.selection.sort);
        let style = if sorted { bold.add_modifier(Modifier::UNDERLINED) } else { bold };
        let head = shorten(column.head, *width, &view.style);
        let pad = if column.is_number() { width - self::width(&head) } else { 0 };
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
        let style = &view.style;
        let text = match column.kind {
            Kind::Number(text) => shorten(&clean(&text(one), style), *width, style),
            Kind::Command => command(one, *width, style),
            Kind::Path(text) => shorten_front(&clean(&text(one), style), *width, style),
        };
        let pad = if column.is_number() { width.saturating_sub(self::width(&text)) } else { 0 };
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

    fn heads(room: usize, sort: Sort) -> String {
        fit(room, sort).iter().map(|(column, _)| column.head).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn columns_take_the_whole_width_and_no_more() {
        for (room, sort) in (24..200).flat_map(|room| Sort::ALL.map(|sort| (room, sort))) {
            let used: usize = fit(room, sort).iter().map(|(_, width)| width + GAP).sum::<usize>() - GAP;
            assert_eq!(used, room, "by {}", sort.name());
        }
        assert_eq!((fit(80, Sort::Tiny).len(), fit(120, Sort::Tiny).len()), (10, 11));
    }

    #[test]
    fn the_column_that_sorts_is_shown_at_every_width() {
        for (room, sort) in (1..200).flat_map(|room| Sort::ALL.map(|sort| (room, sort))) {
            let shown = fit(room, sort);
            assert!(shown.iter().any(|(column, _)| column.sort == Some(sort)), "{room} by {}", sort.name());
        }
        let sortable = |sort: &Sort| fit(80, Sort::Pid).iter().any(|(column, _)| column.sort == Some(*sort));
        assert!(Sort::ALL.iter().all(sortable), "a usual screen has each column that it can be sorted by");
    }

    #[test]
    fn a_narrow_screen_leaves_out_the_least_important_columns() {
        assert_eq!(heads(60, Sort::Tiny), "PID COMMAND TINY/s READ/s WRITE/s PENDING AGE");
        assert_eq!(heads(60, Sort::System), "PID COMMAND TINY/s READ/s SYS% PENDING AGE");
        assert_eq!(heads(40, Sort::Tiny), "PID COMMAND TINY/s PENDING");
        assert_eq!(heads(40, Sort::Age), "PID COMMAND PENDING AGE");
        assert_eq!(heads(40, Sort::Pending), "PID COMMAND TINY/s PENDING");
    }

    #[test]
    fn a_command_that_is_too_long_shows_its_program() {
        let style = Style::default();
        let one = ProcessActivity {
            comm: "python3".into(),
            command: "/usr/bin/python3 worker.py --listen 8080".into(),
            ..ProcessActivity::default()
        };
        let at = |room| command(&one, room, &style);
        assert_eq!(at(80), "/usr/bin/python3 worker.py --listen 8080");
        assert_eq!(at(24), "python3 worker.py --lis…");
        assert_eq!((at(10), at(5)), ("python3".into(), "pyth…".into()));
        let short = ProcessActivity { command: "./a w".into(), ..one };
        assert_eq!(command(&short, 10, &style), "./a w");
    }
}
