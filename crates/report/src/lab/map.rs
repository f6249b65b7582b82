//! The map of all experiments: which agree with what they state.

use weir_model::lab::{LabDocument, LabRow};

use super::page::experiment_id;
use crate::svg::{NARROW, Picture, Svg};

/// Height of a tile with the gap below it: one line of text.
const PITCH: f64 = 30.0;
/// Gap between two tiles.
const GAP: f64 = 6.0;
/// Columns of tiles on a wide drawing: names have at most 23 characters.
const COLUMNS: usize = 4;

/// Returns the map; `None` without experiments.
pub(super) fn agreement(document: &LabDocument, prefix: &str) -> Option<Picture> {
    let rows = &document.experiments;
    let draw = |width: f64| {
        let columns = if width <= NARROW { 2 } else { COLUMNS };
        let wide = (width - 2.0) / columns as f64 - GAP;
        let lines = rows.len().div_ceil(columns);
        let mut svg = Svg::new(width, lines as f64 * PITCH + 2.0);
        for (at, row) in rows.iter().enumerate() {
            // Down the columns, so that the experiments of a theme stay together.
            let (column, line) = (at / lines, at % lines);
            let place = [1.0 + column as f64 * (wide + GAP), 1.0 + line as f64 * PITCH];
            svg.begin("a", &[("href", &format!("#{}", experiment_id(prefix, &row.name)))]);
            tile(&mut svg, row, place, wide);
            svg.end("a");
        }
        svg
    };
    let description = "Each experiment is a tile with a link to it: ✓ agrees with what it states, ✗ does not, – cannot \
                       run on this machine.";
    let title = "Do the experiments agree?";
    (!rows.is_empty()).then(|| Picture::new(&format!("{prefix}map"), title, description, Vec::new(), draw))
}

fn tile(svg: &mut Svg, row: &LabRow, [x, y]: [f64; 2], wide: f64) {
    let (class, sign) = match row.agrees {
        Some(true) => ("tile agrees", "✓"),
        Some(false) => ("tile differs", "✗"),
        None => ("tile absent", "–"),
    };
    let tip = row.reason.as_ref().unwrap_or(&row.about);
    let size = [("x", x), ("y", y), ("width", wide), ("height", PITCH - GAP), ("rx", 4.0)];
    svg.element("rect", class, &size, Some(tip));
    svg.text("strong", [x + 8.0, y + 16.5], "start", sign);
    svg.text("label", [x + 25.0, y + 16.5], "start", &row.name);
}
