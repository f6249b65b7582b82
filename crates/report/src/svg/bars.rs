//! A picture of rows with bars: one value a row, or parts of a whole side by side.

use super::{NARROW, Picture, RowChart, Svg};
use crate::scale::{Axis, Spacing};

/// One row of bars.
#[derive(Debug, Clone, PartialEq)]
pub struct BarRow {
    /// Text left of the bars.
    pub label: String,
    /// Parts from left to right: length on the axis, classes in the page's style, tip.
    pub parts: Vec<(f64, String, String)>,
    /// Text right of the bars.
    pub figure: String,
}

/// Texts and axis of a picture of bars.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct BarsText<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub axis: Axis,
    /// Name of the axis with its unit.
    pub axis_name: &'a str,
}

/// Smallest value of a logarithmic axis: below the smallest count, so that the bar of a 1 can be seen, and above 0.5, which
/// would get a tick.
const LOG_LOW: f64 = 0.6;

/// Returns the picture; `None` without rows, or if the axis can show none of the values.
pub fn bars(text: &BarsText, rows: &[BarRow]) -> Option<Picture> {
    let low = if text.axis.spacing == Spacing::Log { LOG_LOW } else { 0.0 };
    let length = |row: &BarRow| row.parts.iter().map(|part| part.0).sum::<f64>();
    let mut ends: Vec<f64> = rows.iter().map(length).collect();
    ends.push(low);
    let labels: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
    let draw = |width: f64| {
        let mut chart = RowChart::new(width, &labels, (text.axis, &ends), text.axis_name)?;
        for (at, row) in rows.iter().enumerate() {
            let (top, height) = chart.band(at);
            let mut from = 0.0;
            for (value, class, tip) in row.parts.iter().filter(|part| part.0 > 0.0) {
                let (x1, x2) = (chart.x(f64::max(from, low)), chart.x(from + value));
                chart.svg.rect(&format!("bar {class}"), [x1, top], [(x2 - x1).max(1.0), height], Some(tip));
                from += value;
            }
            chart.figure(at, &row.figure);
        }
        Some(chart.svg)
    };
    if rows.is_empty() {
        return None;
    }
    draw(NARROW)?;
    Some(Picture::new(text.id, text.title, text.description, Vec::new(), |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}
