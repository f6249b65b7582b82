//! User time, system time and waiting as parts of the elapsed time.

use weir_model::bench::BenchRow;
use weir_model::duration::format_seconds;

use super::super::section::{Section, label};
use super::{MAX_ROWS, NUMBER, left_out};
use crate::number::whole_percent;
use crate::svg::{BarRow, BarsText, Picture, bars};

/// Names of the parts with their classes in the style.
const PARTS: [(&str, &str); 3] = [("user", "user"), ("system", "system"), ("waiting", "wait")];

/// Returns the parts of a row's elapsed time in seconds: user, system, the rest.
fn parts(row: &BenchRow) -> Option<[f64; 3]> {
    let (elapsed, user, system) = (row.elapsed_s?.median, row.user_s?.median, row.system_s?.median);
    (elapsed > 0.0).then(|| [user, system, (elapsed - user - system).max(0.0)])
}

/// Returns the parts of the elapsed time of a group's rows as shares.
pub fn stacked(section: &Section, prefix: &str) -> Option<Picture> {
    let rows: Vec<BarRow> = section.measured().filter_map(|(row, _)| bar(row)).collect();
    let description = format!(
        "Shares of the elapsed time: blue in the program and its C library (user), orange in the kernel (system), grey \
         waiting for a device or a processor. At the right is the elapsed time.{}",
        left_out(rows.len())
    );
    let text = BarsText {
        id: &format!("{prefix}parts"),
        title: "Where the time goes",
        description: &description,
        axis: NUMBER,
        axis_name: "% of the elapsed time",
    };
    bars(&text, &rows[..rows.len().min(MAX_ROWS)])
}

fn bar(row: &BenchRow) -> Option<BarRow> {
    let parts = parts(row)?;
    let sum: f64 = parts.iter().sum();
    let part = |((name, class), part): (&(&str, &str), f64)| {
        let share = whole_percent(part / sum);
        let tip = format!("{}: {name} {} ({share} %)", label(row), format_seconds(part));
        (part / sum * 100.0, (*class).to_string(), tip)
    };
    let elapsed = row.elapsed_s.map_or(0.0, |elapsed| elapsed.median);
    let parts = PARTS.iter().zip(parts).map(part).collect();
    Some(BarRow { label: label(row), parts, figure: format_seconds(elapsed) })
}
