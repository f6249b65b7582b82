//! Draws boxes side by side, each with two lines above it.

use weir_model::lab::{FrameBox, FrameLine};

use crate::style::{Emphasis, Style};
use crate::text::{clean, shorten, width};

/// Content of one box.
#[derive(Debug, Clone, Default)]
pub(super) struct StepBox {
    /// First line above the box.
    pub header: String,
    /// Second line above the box.
    pub title: String,
    /// Lines of the content; `true` for a line that the step added.
    pub rows: Vec<(String, bool)>,
    /// Priority if not all boxes fit; 0 is the highest.
    pub rank: u8,
    /// The step changes this box.
    pub strong: bool,
}

/// Lines of a content in a frame of a page: with more, a reader cannot compare two frames.
const FRAME_LINES: usize = 8;

impl StepBox {
    /// Returns the box with the last lines of its content.
    pub(super) fn into_frame(self) -> FrameBox {
        let rows = self.rows.len().min(FRAME_LINES);
        let lines = last(&self.rows, rows).into_iter().map(|(text, new)| FrameLine { text, new }).collect();
        FrameBox { header: self.header, title: self.title, lines, changed: self.strong }
    }
}

/// Draws the boxes over the whole width with `rows` lines of content each (`usize::MAX`: as many as the longest has).
/// A longer content loses its first lines.
pub(super) fn boxes(columns: &[StepBox], rows: usize, style: &Style) -> Vec<String> {
    if columns.is_empty() {
        return Vec::new();
    }
    let wide = (style.width + 2) / columns.len() - 2;
    let tallest = columns.iter().map(|column| column.rows.len()).max().unwrap_or(0);
    let rows = if rows == usize::MAX { tallest.max(1) } else { rows };
    let drawn: Vec<Vec<String>> = columns.iter().map(|column| one(column, wide, rows, style)).collect();
    let line = |at: usize| {
        let parts: Vec<&str> = drawn.iter().map(|lines| lines[at].as_str()).collect();
        parts.join("  ").trim_end().to_string()
    };
    (0..rows + 4).map(line).collect()
}

fn one(column: &StepBox, wide: usize, rows: usize, style: &Style) -> Vec<String> {
    let [corner, flat, upright] =
        style.sign([["┌┐", "└┘"], ["─", "─"], ["│", "│"]], [["++", "++"], ["-", "-"], ["|", "|"]]);
    let emphasis = if column.strong { Emphasis::Strong } else { Emphasis::Plain };
    let edge = |corners: &str| {
        let mut ends = corners.chars();
        let (left, right) = (ends.next().unwrap_or('+'), ends.next().unwrap_or('+'));
        format!("{left}{}{right}", flat[0].repeat(wide.saturating_sub(2)))
    };
    let mut lines = vec![
        style.paint(emphasis, &padded(&column.header, wide, style)),
        padded(&column.title, wide, style),
        edge(corner[0]),
    ];
    for (text, new) in last(&column.rows, rows) {
        let text = padded(&text, wide.saturating_sub(4), style);
        let emphasis = if new { Emphasis::Good } else { Emphasis::Plain };
        lines.push(format!("{} {} {}", upright[0], style.paint(emphasis, &text), upright[0]));
    }
    lines.push(edge(corner[1]));
    lines
}

/// Returns exactly `rows` lines: the last ones of the content, with a note about hidden ones above.
fn last(all: &[(String, bool)], rows: usize) -> Vec<(String, bool)> {
    let mut shown = all.to_vec();
    if all.len() > rows {
        let hidden = all.len() - rows + 1;
        shown = all[hidden..].to_vec();
        shown.insert(0, (format!("… {hidden} before"), false));
    }
    shown.resize(rows, (String::new(), false));
    shown
}

fn padded(text: &str, wide: usize, style: &Style) -> String {
    let text = shorten(&clean(text, style), wide, style);
    let room = wide.saturating_sub(width(&text));
    text + &" ".repeat(room)
}
