//! The area of a plot inside of its axes: points and the lines between them, drawn by ratatui and returned as text.
//!
//! ratatui's `Canvas`, not its `Chart`: a chart puts its labels at equal distances, not at their values.

use std::collections::HashMap;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::canvas::{Canvas, Context, Line, Points};

use super::{Plot, marker};
use crate::scale::Scale;
use crate::style::{Emphasis, Style};

/// The drawn area of a plot.
pub(super) struct Drawn {
    /// Lines of text from top to bottom, without spaces at their ends.
    pub lines: Vec<String>,
    /// A point of one series covers a point of another.
    pub hidden: bool,
}

/// Columns and rows of points in characters, from 0 at the lower left corner.
type Cells = Vec<(f64, f64)>;

/// Draws the points of `plot` into an area of `size` (columns, lines), each at least 1.
pub(super) fn draw(plot: &Plot, scales: [Scale; 2], size: [usize; 2], style: &Style) -> Drawn {
    let cells: Vec<Cells> = plot.series.iter().map(|series| cells(&series.points, scales, size)).collect();
    let area = Rect::new(0, 0, size[0] as u16, size[1] as u16);
    let mut buffer = Buffer::empty(area);
    Canvas::default()
        .x_bounds([0.0, (size[0] - 1) as f64])
        .y_bounds([0.0, (size[1] - 1) as f64])
        .paint(|context| paint(context, &cells, style))
        .render(area, &mut buffer);
    let lines = (0..size[1] as u16).map(|row| text(&buffer, row, style)).collect();
    Drawn { lines, hidden: hidden(&cells) }
}

/// Returns the cells of the points that the scales can show.
fn cells(points: &[(f64, f64)], [x, y]: [Scale; 2], size: [usize; 2]) -> Cells {
    let cell = |share: f64, cells: usize| (share * (cells - 1) as f64).round();
    points
        .iter()
        .filter_map(|&(px, py)| Some((cell(x.share(px)?, size[0]), cell(y.share(py)?, size[1]))))
        .collect()
}

/// Paints all lines, then the points from the last series to the first. Each change of the marker begins a layer, which covers
/// the layers before.
fn paint(context: &mut Context, cells: &[Cells], style: &Style) {
    let colour = |series: usize| Color::Indexed(series as u8);
    context.marker(Marker::Custom(style.sign('·', '.')));
    for (series, cells) in cells.iter().enumerate().rev() {
        for pair in cells.windows(2) {
            context.draw(&Line::new(pair[0].0, pair[0].1, pair[1].0, pair[1].1, colour(series)));
        }
    }
    for (series, cells) in cells.iter().enumerate().rev() {
        context.marker(Marker::Custom(marker(series, style)));
        context.draw(&Points::new(cells, colour(series)));
    }
}

/// Returns whether a point of one series covers a point of another.
fn hidden(cells: &[Cells]) -> bool {
    let mut owner = HashMap::new();
    cells.iter().enumerate().any(|(series, cells)| {
        cells.iter().any(|&(x, y)| *owner.entry((x as usize, y as usize)).or_insert(series) != series)
    })
}

/// Returns one line of the buffer. The colour of a cell is the index of its series; [`Style`] maps it to a colour of
/// the terminal.
fn text(buffer: &Buffer, row: u16, style: &Style) -> String {
    let between = style.sign("·", ".");
    let emphasis = |symbol: &str, colour: Color| match colour {
        Color::Indexed(series) if symbol == between => Emphasis::Between(series.into()),
        Color::Indexed(series) => Emphasis::Series(series.into()),
        _ => Emphasis::Plain,
    };
    let mut line = String::new();
    let mut run = (Emphasis::Plain, String::new());
    for column in 0..buffer.area.width {
        let cell = &buffer[(column, row)];
        let next = emphasis(cell.symbol(), cell.fg);
        if next != run.0 {
            line += &style.paint(run.0, &run.1);
            run = (next, String::new());
        }
        run.1 += cell.symbol();
    }
    let line = line + &style.paint(run.0, &run.1);
    line.trim_end().into()
}
