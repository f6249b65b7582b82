//! Ratios by method and record size as a map of colours.

use weir_model::{Size, estimate};

use super::super::rows::vs_best_text;
use super::super::section::{Section, label};
use crate::svg::{DIGIT, NARROW, Picture, Svg};

/// Height of a cell in pixels: room for one figure.
const CELL: f64 = 26.0;
/// Room for the names of the methods.
const LEFT: f64 = 150.0;
/// Smallest numbers of methods and sizes for a map: with fewer, the curves show as much.
const MIN_CELLS: usize = 3;
/// The least room beside a figure.
const ROOM: f64 = 4.0;

/// Returns the map of a group's ratios to its best row.
pub fn heat(section: &Section, prefix: &str) -> Option<Picture> {
    let mut sizes: Vec<u64> = section.measured().map(|(row, _)| row.record_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < MIN_CELLS || section.variants.len() < MIN_CELLS {
        return None;
    }
    let most = section.measured().filter_map(|(row, _)| Some(row.vs_best?.value)).fold(1.0f64, f64::max);
    let draw = |width: f64| {
        let above = width <= NARROW;
        let (left, pitch) = if above { (6.0, CELL + 18.0) } else { (LEFT, CELL) };
        let cell = (width - left - 6.0) / sizes.len() as f64;
        let height = section.variants.len() as f64 * pitch + 42.0;
        let mut svg = Svg::new(width, height);
        for (at, name) in section.variants.iter().enumerate() {
            let y = at as f64 * pitch;
            match above {
                true => svg.text("label", [left, y + 13.0], "start", name),
                false => svg.text("label", [left - 8.0, y + 17.0], "end", name),
            }
        }
        for (row, _) in section.measured() {
            let Some(vs) = row.vs_best else { continue };
            let Some(column) = sizes.iter().position(|size| *size == row.record_bytes) else { continue };
            let top = section.series(row) as f64 * pitch + if above { 18.0 } else { 0.0 };
            let x = left + column as f64 * cell;
            // Each factor has the same step of colour. At 0.78 a figure is still readable in light and in dark style.
            let depth = 0.08 + 0.7 * (vs.value.max(1.0).ln() / most.ln().max(f64::MIN_POSITIVE)).min(1.0);
            let figure = vs_best_text(row).unwrap_or_default();
            let tip = format!("{}: {} the best", label(row), estimate::ratio(&vs));
            let place = [("x", x), ("y", top), ("width", cell), ("height", CELL)];
            svg.begin("g", &[("fill-opacity", &format!("{depth:.2}"))]);
            svg.element("rect", "cell", &place, Some(&tip));
            svg.end("g");
            // A wide interval may not fit: its row's tip and the table have it.
            if figure.chars().count() as f64 * DIGIT + ROOM <= cell {
                svg.text("figure", [x + cell / 2.0, top + 17.0], "middle", &figure);
            }
        }
        let bottom = height - 42.0;
        let every = (34.0 / cell).ceil().max(1.0) as usize;
        for (column, size) in sizes.iter().enumerate().step_by(every) {
            let x = left + (column as f64 + 0.5) * cell;
            let text = Size(*size).to_string().replace(" B", "").replace("iB", "").replace(' ', "");
            svg.text("tick", [x, bottom + 15.0], "middle", &text);
        }
        svg.text("name", [width - 4.0, bottom + 33.0], "end", "record size");
        svg
    };
    let description = "Time divided by that of the best row; = is a tie, and two figures are an interval. The stronger the \
                       colour, the slower. An interval that does not fit into its field is in the table.";
    Some(Picture::new(&format!("{prefix}map"), "Method and record size", description, Vec::new(), draw))
}
