//! A drawing with one line for each row: label, then marks on a common horizontal axis.

use super::{DIGIT, NARROW, Svg};
use crate::scale::{Axis, Scale};

/// Width of a character of a label in pixels, for the room that labels get. Labels have 12 pixels.
const CHARACTER: f64 = 7.2;
/// Largest share of the width for labels beside the marks.
const MAX_LABELS: f64 = 0.4;
/// Least room at the right for a figure.
const RIGHT: f64 = 68.0;
/// Room below the rows for the axis.
const BOTTOM: f64 = 40.0;

/// Rows on a common axis. On a narrow drawing the label is above its row.
pub struct RowChart {
    /// Takes further elements, on top of the labels.
    pub svg: Svg,
    scale: Scale,
    left: f64,
    right: f64,
    pitch: f64,
    above: bool,
}

impl RowChart {
    /// Makes a chart with one row for each label; `None` if the axis can show none of the values.
    pub fn new(width: f64, labels: &[String], axis: (Axis, &[f64]), name: &str) -> Option<Self> {
        Self::with_figures(width, labels, axis, name, &[])
    }

    /// Makes a chart as [`Self::new`], with room at the right for the given figures.
    pub fn with_figures(
        width: f64,
        labels: &[String],
        (axis, values): (Axis, &[f64]),
        name: &str,
        figures: &[&str],
    ) -> Option<Self> {
        let digits = figures.iter().map(|figure| figure.chars().count()).max().unwrap_or(0) as f64;
        let right = RIGHT.max(digits * DIGIT + 12.0);
        let scale = Scale::new(axis, values.iter().copied())?;
        let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64;
        let above = width <= NARROW;
        let (left, pitch) = match above {
            true => (8.0, 36.0),
            false => ((longest * CHARACTER + 16.0).min(width * MAX_LABELS), 22.0),
        };
        let mut svg = Svg::new(width, labels.len() as f64 * pitch + BOTTOM + 6.0);
        let bottom = svg.height - BOTTOM;
        for (share, label) in scale.ticks(if above { 4 } else { 7 }) {
            let x = left + share * (width - right - left);
            svg.line("grid", [x, 4.0], [x, bottom]);
            svg.text("tick", [x.max(label.chars().count() as f64 * 3.5), bottom + 15.0], "middle", &label);
        }
        svg.line("axis", [left, bottom], [width - right, bottom]);
        svg.text("name", [width - 4.0, bottom + 33.0], "end", name);
        let mut chart = Self { svg, scale, left, right, pitch, above };
        let room = ((if above { width - 12.0 } else { left - 10.0 }) / CHARACTER) as usize;
        for (row, label) in labels.iter().enumerate() {
            let text = shortened(label, room);
            let (y, _) = chart.band(row);
            match above {
                true => chart.svg.text("label", [8.0, y - 4.0], "start", &text),
                false => chart.svg.text("label", [left - 8.0, y + 11.0], "end", &text),
            }
        }
        Some(chart)
    }

    /// Returns the upper end and the height of the band of a row.
    pub fn band(&self, row: usize) -> (f64, f64) {
        let top = 5.0 + row as f64 * self.pitch;
        if self.above { (top + 17.0, 14.0) } else { (top + 3.0, 15.0) }
    }

    /// Returns the horizontal position of a value; values outside of the axis are at its nearest end.
    pub fn x(&self, value: f64) -> f64 {
        let right = self.svg.width - self.right;
        let share = self.scale.share(value).unwrap_or(if value > self.scale.middle() { 1.0 } else { 0.0 });
        self.left + share * (right - self.left)
    }

    /// Shades the part between two values in every row.
    pub fn shade(&mut self, low: f64, high: f64) {
        let (x1, x2) = (self.x(low), self.x(high));
        let height = self.svg.height - BOTTOM - 4.0;
        self.svg.rect("noise", [x1, 4.0], [(x2 - x1).max(1.0), height], None);
    }

    /// Writes a figure at the right end of a row.
    pub fn figure(&mut self, row: usize, text: &str) {
        let (y, height) = self.band(row);
        self.svg.text("figure", [self.svg.width - self.right + 8.0, y + height - 3.5], "start", text);
    }
}

/// Returns a label of at most `most` characters: the middle of a longer one is cut out, because paths differ at their end.
pub(crate) fn shortened(label: &str, most: usize) -> String {
    let letters: Vec<char> = label.chars().collect();
    if letters.len() <= most || most < 5 {
        return label.into();
    }
    let head = (most - 1) / 3;
    let tail = most - 1 - head;
    letters[..head].iter().chain(['…'].iter()).chain(&letters[letters.len() - tail..]).collect()
}
