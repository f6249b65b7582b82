//! Plots in text: points of several series on linear or logarithmic axes.
//!
//! Series differ by marker, so the plot reads without colour. Where points of several series fall on
//! one character, the first series is seen; the legend says so when it happens.

mod canvas;

use crate::scale::{Axis, Scale};
use crate::style::{Emphasis, Style};
use crate::text::{clean, width};

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points; what has no place on the axes is left out.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// What is drawn against what.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// From the front to the back.
    pub series: Vec<Series>,
    /// Lines of the canvas.
    pub height: usize,
}

const MARKERS: [char; 8] = ['●', '○', '△', '□', '◆', '◇', '▲', '■'];
const ASCII_MARKERS: [char; 8] = ['*', 'o', '^', '#', 'x', '+', '%', '@'];

/// The marker of series number `series`: signs first, then letters, so that 34 can be told apart.
pub fn marker(series: usize, style: &Style) -> char {
    let signs = style.sign(MARKERS, ASCII_MARKERS);
    let letters = |n: usize| char::from(b'a' + (n % 26) as u8);
    signs.get(series).copied().unwrap_or_else(|| letters(series - signs.len()))
}

/// Wider than this, points that belong together drift apart.
const WIDEST: usize = 100;
/// Narrower than this there is nothing to see.
const NARROWEST: usize = 12;
/// Columns that a label of the horizontal axis takes, with the space between two.
const LABEL: usize = 8;

impl Plot {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|series| series.points.iter().copied())
    }

    /// Its lines, each indented by `indent`, within `style.width`; none where no point has a place.
    pub fn lines(&self, indent: usize, style: &Style) -> Vec<String> {
        // A point beside one axis must not stretch the other.
        let on = |axis, value| Scale::of(axis, [value]).is_some();
        let placed: Vec<_> = self.points().filter(|&(x, y)| on(self.x, x) && on(self.y, y)).collect();
        let x = Scale::of(self.x, placed.iter().map(|point| point.0));
        let y = Scale::of(self.y, placed.iter().map(|point| point.1));
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

    /// The title with the legend behind it where there is room, else below it.
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

/// Ticks by character; no two on the same.
fn ticks(scale: &Scale, most: usize, cells: usize, style: &Style) -> Vec<(usize, String)> {
    let cell = |share: f64| (share * (cells - 1) as f64).round() as usize;
    let mut ticks: Vec<_> =
        scale.ticks(most).into_iter().map(|(share, label)| (cell(share), clean(&label, style))).collect();
    ticks.dedup_by_key(|tick| tick.0);
    ticks
}

/// What stands left of a line of the canvas, `margin` columns wide.
fn y_axis(tick: Option<&(usize, String)>, margin: usize, style: &Style) -> String {
    let (label, line) = match tick {
        Some((_, label)) => (label.as_str(), style.sign("┤", "+")),
        None => ("", style.sign("│", "|")),
    };
    let space = " ".repeat(margin.saturating_sub(2 + width(label)));
    format!("{space}{label} {}", style.paint(Emphasis::Faint, line))
}

/// The line below the canvas and the labels below that.
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
