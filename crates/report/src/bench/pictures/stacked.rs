//! User time, system time and waiting as parts of the elapsed time.

use weir_model::bench::BenchRow;
use weir_model::duration::format_seconds;

use super::super::section::{Section, label};
use super::{NUMBER, ROWS_MOST, left_out};
use crate::number::whole_percent;
use crate::svg::{NARROW, Picture, RowChart, Svg};

/// Names of the parts with their classes in the style.
const PARTS: [(&str, &str); 3] = [("user", "bar user"), ("system", "bar system"), ("waiting", "bar wait")];

/// Returns the parts of a row's elapsed time in seconds: user, system, the rest.
fn parts(row: &BenchRow) -> Option<[f64; 3]> {
    let (elapsed, user, system) = (row.elapsed_s?.median, row.user_s?.median, row.system_s?.median);
    (elapsed > 0.0).then(|| [user, system, (elapsed - user - system).max(0.0)])
}

/// Returns the parts of the elapsed time of a group's rows as shares.
pub fn stacked(section: &Section, prefix: &str) -> Option<Picture> {
    let rows: Vec<(&BenchRow, [f64; 3])> =
        section.measured().filter_map(|(row, _)| Some((row, parts(row)?))).collect();
    let shown = &rows[..rows.len().min(ROWS_MOST)];
    let draw = |width: f64| {
        let labels: Vec<String> = shown.iter().map(|(row, _)| label(row)).collect();
        let mut chart = RowChart::new(width, &labels, (NUMBER, &[0.0, 100.0]), "% of the elapsed time")?;
        for (at, (row, parts)) in shown.iter().enumerate() {
            let (top, height) = chart.band(at);
            let sum: f64 = parts.iter().sum();
            let mut from = 0.0;
            for ((name, class), part) in PARTS.iter().zip(parts) {
                let to = from + part / sum * 100.0;
                let (x1, x2) = (chart.x(from), chart.x(to));
                let share = whole_percent(part / sum);
                let tip = format!("{}: {name} {} ({share} %)", label(row), format_seconds(*part));
                chart.svg.rect(class, [x1, top], [x2 - x1, height], Some(&tip));
                from = to;
            }
            let elapsed = row.elapsed_s.map_or(0.0, |elapsed| elapsed.median);
            chart.figure(at, &format_seconds(elapsed));
        }
        Some(chart.svg)
    };
    if shown.is_empty() {
        return None;
    }
    draw(NARROW)?;
    let description = format!(
        "Shares of the elapsed time: blue in the program and its C library (user), orange in the kernel (system), grey \
         waiting for a device or a processor. At the right is the elapsed time.{}",
        left_out(rows.len())
    );
    Some(Picture::new(&format!("{prefix}parts"), "Where the time goes", &description, Vec::new(), |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}
