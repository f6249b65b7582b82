//! A drawing with two axes.

use super::{NARROW, Svg, series_class};
use crate::scale::{Axis, Scale};

/// Room above the canvas for the labels of vertical marks.
const TOP: f64 = 22.0;
/// Room below the canvas for the labels and the name of the horizontal axis.
const BOTTOM: f64 = 42.0;
/// Room for the labels of the vertical axis: 7 characters of 12 pixels.
const LEFT: f64 = 62.0;
/// Room for half of the last label of the horizontal axis.
const RIGHT: f64 = 24.0;
/// Width of a character of a note in pixels. Notes have 11 pixels.
const NOTE_CHARACTER: f64 = 6.0;

/// A line at a value of the horizontal axis that readers know, such as the size of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct VerticalMark {
    pub at: f64,
    pub label: &'static str,
}

/// A canvas with two axes. Values outside of the axes are not drawn.
pub struct Chart {
    /// Takes further elements, on top of the axes.
    pub svg: Svg,
    x: Scale,
    y: Scale,
}

impl Chart {
    /// Makes a chart with axes from the smallest to the largest of the values; `None` if an axis can show none of them.
    pub fn new(
        [width, height]: [f64; 2],
        (x, xs): (Axis, &[f64]),
        (y, ys): (Axis, &[f64]),
        names: [&str; 2],
    ) -> Option<Self> {
        let x = Scale::new(x, xs.iter().copied())?;
        let y = Scale::new(y, ys.iter().copied())?;
        let mut chart = Self { svg: Svg::new(width, height), x, y };
        chart.axes(names);
        Some(chart)
    }

    fn area(&self) -> [f64; 4] {
        [LEFT, TOP, self.svg.width - RIGHT, self.svg.height - BOTTOM]
    }

    /// Returns the horizontal position of a value.
    pub fn x(&self, value: f64) -> Option<f64> {
        let [left, _, right, _] = self.area();
        Some(left + self.x.share(value)? * (right - left))
    }

    /// Returns the vertical position of a value.
    pub fn y(&self, value: f64) -> Option<f64> {
        let [_, top, _, bottom] = self.area();
        Some(bottom - self.y.share(value)? * (bottom - top))
    }

    fn axes(&mut self, [x_name, y_name]: [&str; 2]) {
        let [left, top, right, bottom] = self.area();
        let most = if self.svg.width <= NARROW { 5 } else { 9 };
        for (share, label) in self.y.ticks(7) {
            let y = bottom - share * (bottom - top);
            self.svg.line("grid", [left, y], [right, y]);
            self.svg.text("tick", [left - 7.0, y + 4.0], "end", &label);
        }
        for (share, label) in self.x.ticks(most) {
            let x = left + share * (right - left);
            self.svg.line("grid", [x, top], [x, bottom]);
            self.svg.text("tick", [x, bottom + 16.0], "middle", &label);
        }
        self.svg.line("axis", [left, bottom], [right, bottom]);
        self.svg.text("name", [right, bottom + 34.0], "end", x_name);
        self.svg.text("name", [4.0, 11.0], "start", y_name);
    }

    /// Shades the part of the canvas from `from` to the right end, with a label in it.
    pub fn shade_from(&mut self, from: f64, label: &str) {
        let Some(x) = self.x(from) else { return };
        let [_, top, right, bottom] = self.area();
        self.svg.rect("plateau", [x, top], [right - x, bottom - top], None);
        // A label that is wider than the shaded part would seem to name more.
        if label.chars().count() as f64 * NOTE_CHARACTER < right - x - 5.0 {
            self.svg.text("note", [right - 5.0, top + 14.0], "end", label);
        }
    }

    /// Shades the part of the canvas between two values of the vertical axis.
    pub fn shade_between(&mut self, low: f64, high: f64) {
        let [left, top, right, bottom] = self.area();
        let (y1, y2) = (self.y(high).unwrap_or(top), self.y(low).unwrap_or(bottom));
        self.svg.rect("noise", [left, y1], [right - left, y2 - y1], None);
    }

    /// Draws the vertical marks that are inside of the axis.
    pub fn marks(&mut self, marks: &[VerticalMark]) {
        let [_, top, _, bottom] = self.area();
        for mark in marks {
            let Some(x) = self.x(mark.at) else { continue };
            self.svg.line("landmark", [x, top], [x, bottom]);
            self.svg.text("note", [x, top - 5.0], "middle", mark.label);
        }
    }

    /// Draws a dotted vertical line.
    pub fn landmark(&mut self, at: f64) {
        let Some(x) = self.x(at) else { return };
        let [_, top, _, bottom] = self.area();
        self.svg.line("landmark", [x, top], [x, bottom]);
    }

    /// Draws a series: band between the ends of the intervals, line, and a mark with a tip at each point. A point is x, y and
    /// the ends of its interval.
    pub fn series(&mut self, series: usize, points: &[([f64; 4], String)], joined: bool) {
        let class = series_class(series);
        self.svg.begin("g", &[("class", &class), ("data-series", &series.to_string())]);
        let placed: Vec<([f64; 4], &String)> = points
            .iter()
            .filter_map(|([x, y, low, high], tip)| {
                let (x, y) = (self.x(*x)?, self.y(*y)?);
                Some(([x, y, self.y(*low).unwrap_or(y), self.y(*high).unwrap_or(y)], tip))
            })
            .collect();
        if joined && placed.len() > 1 {
            let lower = placed.iter().map(|([x, _, low, _], _)| [*x, *low]);
            let upper = placed.iter().rev().map(|([x, _, _, high], _)| [*x, *high]);
            self.svg.polyline("band", &lower.chain(upper).collect::<Vec<_>>(), true);
            let line: Vec<[f64; 2]> = placed.iter().map(|([x, y, ..], _)| [*x, *y]).collect();
            self.svg.polyline(if series >= 4 { "curve dashed" } else { "curve" }, &line, false);
        }
        for ([x, y, low, high], tip) in placed {
            if !joined || (low - high).abs() > 3.0 {
                self.svg.line("whisker", [x, low], [x, high]);
            }
            self.svg.mark("mark", series, [x, y], tip);
        }
        self.svg.end("g");
    }
}
