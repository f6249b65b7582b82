//! Draws a frame of a recorded run: the buffers of the processes above, files and pipes below.

use weir_model::lab::{FrameBox, LabFrame};

use crate::svg::{NARROW, Picture, Svg, shortened};

/// Width of a character of a content in pixels: monospaced, 12 pixels high.
const CODE: f64 = 7.3;
/// Width of a character of a header in pixels.
const LABEL: f64 = 6.8;
/// Height of a line of a content.
const LINE: f64 = 17.0;
/// Height of the two lines above a box.
const HEAD: f64 = 36.0;
/// Gap between two boxes.
const GAP: f64 = 14.0;
/// Height of the arrow between processes and files.
const ARROW: f64 = 40.0;

/// Returns the picture of a frame; its title is the step.
pub(super) fn picture(frame: &LabFrame, number: usize, of: usize, id: &str) -> Picture {
    let title = format!("{number} of {of}: {}", frame.text);
    Picture::new(id, &title, &frame.note, Vec::new(), |width| draw(frame, width))
}

fn draw(frame: &LabFrame, width: f64) -> Svg {
    let columns = |boxes: &[FrameBox]| if width <= NARROW { 1 } else { boxes.len().clamp(1, 3) };
    let height = |boxes: &[FrameBox]| -> f64 {
        boxes.chunks(columns(boxes)).map(|row| HEAD + content(row) + GAP).sum()
    };
    let (above, below) = (height(&frame.processes), height(&frame.files));
    let mut svg = Svg::new(width, above + ARROW + below);
    boxes(&mut svg, &frame.processes, columns(&frame.processes), 0.0);
    if !frame.moved.is_empty() {
        svg.line("arrow", [26.0, above - 6.0], [26.0, above + ARROW - 15.0]);
        let tip = above + ARROW - 8.0;
        svg.polyline("head", &[[21.0, tip - 8.0], [31.0, tip - 8.0], [26.0, tip]], true);
        svg.text("strong", [42.0, above + 16.0], "start", &frame.moved);
    }
    boxes(&mut svg, &frame.files, columns(&frame.files), above + ARROW);
    svg
}

/// Returns the height of the tallest content of boxes side by side.
fn content(row: &[FrameBox]) -> f64 {
    row.iter().map(|one| one.lines.len().max(1)).max().unwrap_or(1) as f64 * LINE + 10.0
}

fn boxes(svg: &mut Svg, boxes: &[FrameBox], columns: usize, mut top: f64) {
    let wide = (svg.width - 2.0 - GAP * (columns - 1) as f64) / columns as f64;
    for row in boxes.chunks(columns) {
        let high = content(row);
        for (at, one) in row.iter().enumerate() {
            draw_box(svg, one, [1.0 + at as f64 * (wide + GAP), top], [wide, high]);
        }
        top += HEAD + high + GAP;
    }
}

fn draw_box(svg: &mut Svg, one: &FrameBox, [x, top]: [f64; 2], [wide, high]: [f64; 2]) {
    let letters = |each: f64, room: f64| (room / each) as usize;
    svg.text("strong", [x, top + 13.0], "start", &shortened(&one.header, letters(LABEL, wide)));
    svg.text("note", [x, top + 29.0], "start", &shortened(&one.title, letters(LABEL * 0.9, wide)));
    let class = if one.changed { "box changed" } else { "box" };
    let size = [("x", x), ("y", top + HEAD), ("width", wide), ("height", high), ("rx", 4.0)];
    svg.element("rect", class, &size, None);
    for (at, line) in one.lines.iter().enumerate() {
        let text = shortened(&line.text, letters(CODE, wide - 16.0));
        let class = if line.new { "code new" } else { "code" };
        svg.text(class, [x + 8.0, top + HEAD + 17.0 + at as f64 * LINE], "start", &text);
    }
}
