//! Plots as text: points of several series on linear or logarithmic axes.
//!
//! Each series has its own marker, so that a plot can be read without colour. If points of several series fall on one
//! character, the first series is shown, and the legend says so.

mod canvas;

use crate::scale::{Axis, Scale};
use crate::style::{Emphasis, Style};
use crate::text::{clean, width};

/// A named list of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y); points that the axes cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// A plot, independent of the terminal's width.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// Series from front to back.
    pub series: Vec<Series>,
    /// Height of the canvas in lines.
    pub height: usize,
}

const MARKERS: [char; 8] = ['●', '○', '△', '□', '◆', '◇', '▲', '■'];
const ASCII_MARKERS: [char; 8] = ['*', 'o', '^', '#', 'x', '+', '%', '@'];

/// Returns the marker of a series: one of 8 signs, then one of 26 letters.
pub fn marker(series: usize, style: &Style) -> char {
    let signs = style.sign(MARKERS, ASCII_MARKERS);
    let letters = |n: usize| char::from(b'a' + (n % 26) as u8);
    signs.get(series).copied().unwrap_or_else(|| letters(series - signs.len()))
}

/// Largest width of the canvas: on a wider one neighbouring points look unrelated.
const WIDEST: usize = 100;
/// Smallest width of the canvas: room for two labels.
const NARROWEST: usize = 12;
/// Width of a label of the horizontal axis with the space after it.
const LABEL: usize = 8;

impl Plot {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|series| series.points.iter().copied())
    }

    /// Returns the lines of the plot, each indented by `indent`, within `style.width`; none if the axes can show no
    /// point.
    pub fn lines(&self, indent: usize, style: &Style) -> Vec<String> {
        // A point that one axis cannot show must not stretch the other.
        let on = |axis, value| Scale::new(axis, [value]).is_some();
        let placed: Vec<_> = self.points().filter(|&(x, y)| on(self.x, x) && on(self.y, y)).collect();
        let x = Scale::new(self.x, placed.iter().map(|point| point.0));
        let y = Scale::new(self.y, placed.iter().map(|point| point.1));
        let (Some(x), Some(y)) = (x, y) else { return Vec::new() };
        let height = self.height.max(2);
        let y_ticks = ticks(&y, height.div_ceil(2), height, style);
        let margin = indent + y_ticks.iter().map(|(_, label)| width(label)).max().unwrap_or(0) + 2;
        let columns = style.width.saturating_sub(margin).clamp(NARROWEST, WIDEST);
        let drawn = canvas::draw(self, [x, y], [columns, height], style);
        let mut lines = self.legend(indent, drawn.hidden, style);
        for (row, canvas) in drawn.lines.iter().enumerate() {
            let tick = y_ticks.iter().find(|(at, _)| height - 1 - at == row);
            lines.push(format!("{}{canvas}", y_axis(tick, margin, style)).trim_end().into());
        }
        lines.extend(x_axis(&ticks(&x, columns / LABEL, columns, style), margin, columns, style));
        lines
    }

    /// Returns the title with the legend after it, or below it if there is no room.
    fn legend(&self, indent: usize, hidden: bool, style: &Style) -> Vec<String> {
        let title = clean(&self.title, style);
        let mut lines = vec![" ".repeat(indent) + &style.paint(Emphasis::Strong, &title)];
        let mut used = indent + width(&title);
        let mut entries: Vec<(Emphasis, String)> = Vec::new();
        for (number, series) in self.series.iter().enumerate().filter(|(_, s)| !s.points.is_empty()) {
            let name = clean(&series.name, style);
            entries.push((Emphasis::Series(number), format!("{} {name}", marker(number, style))));
        }
        if hidden {
            entries.push((Emphasis::Faint, "(where points meet, the first is shown)".into()));
        }
        for (emphasis, entry) in entries {
            if used + 3 + width(&entry) > style.width {
                lines.push(" ".repeat(indent));
                used = indent;
            }
            let gap = if used == indent { 0 } else { 3 };
            used += gap + width(&entry);
            if let Some(line) = lines.last_mut() {
                *line += &(" ".repeat(gap) + &style.paint(emphasis, &entry));
            }
        }
        lines
    }
}

/// Returns the ticks by character position, at most one for each position.
fn ticks(scale: &Scale, most: usize, cells: usize, style: &Style) -> Vec<(usize, String)> {
    let cell = |share: f64| (share * (cells - 1) as f64).round() as usize;
    let mut ticks: Vec<_> =
        scale.ticks(most).into_iter().map(|(share, label)| (cell(share), clean(&label, style))).collect();
    ticks.dedup_by_key(|tick| tick.0);
    ticks
}

/// Returns the vertical axis beside a line of the canvas, `margin` columns wide.
fn y_axis(tick: Option<&(usize, String)>, margin: usize, style: &Style) -> String {
    let (label, line) = match tick {
        Some((_, label)) => (label.as_str(), style.sign("┤", "+")),
        None => ("", style.sign("│", "|")),
    };
    let space = " ".repeat(margin.saturating_sub(2 + width(label)));
    format!("{space}{label} {}", style.paint(Emphasis::Faint, line))
}

/// Returns the line below the canvas and the line with its labels.
fn x_axis(ticks: &[(usize, String)], margin: usize, columns: usize, style: &Style) -> Vec<String> {
    let is_tick = |column: usize| ticks.iter().any(|(at, _)| *at == column);
    let line: String = (0..columns)
        .map(|column| if is_tick(column) { style.sign('┬', '+') } else { style.sign('─', '-') })
        .collect();
    let corner = style.sign("└", "+");
    let axis = " ".repeat(margin - 1) + &style.paint(Emphasis::Faint, &format!("{corner}{line}"));
    let mut labels = String::new();
    for (at, label) in ticks {
        let start = (margin + at)
            .saturating_sub(width(label) / 2)
            .min((margin + columns).saturating_sub(width(label)));
        let used = width(&labels);
        if used == 0 || start > used {
            labels += &" ".repeat(start.saturating_sub(used));
            labels += label;
        }
    }
    vec![axis, labels]
}

#[cfg(test)]
mod tests;
