//! The plot of one group: elapsed time against record size.

use super::section::Section;
use crate::plot::{Plot, Series};
use crate::scale::{Axis, Spacing, Unit};

/// Height of the canvas in lines: two or three for each decade of a textbook table.
const HEIGHT: usize = 11;

/// Returns a plot with one series for each curve; `None` if no method has enough record sizes.
pub(super) fn plot(section: &Section) -> Option<Plot> {
    let series = |number: usize, name: &String| {
        let own = section.measured().filter(|(row, _)| section.series(row) == number);
        let mut points: Vec<(f64, f64)> =
            own.map(|(row, seconds)| (row.record_bytes as f64, seconds)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series { name: name.clone(), points }
    };
    section.has_curve().then(|| Plot {
        title: "elapsed (log) against record size (log)".into(),
        x: Axis { spacing: Spacing::Log, unit: Unit::Bytes },
        y: Axis { spacing: Spacing::Log, unit: Unit::Seconds },
        series: section.variants.iter().enumerate().map(|(number, name)| series(number, name)).collect(),
        height: HEIGHT,
    })
}
