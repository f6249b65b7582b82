//! User time, system time and waiting as parts of the elapsed time.

use weir_model::bench::BenchRow;
use weir_model::duration::format_seconds;

use super::super::section::{Section, label};
use super::{MAX_ROWS, NUMBER, left_out};
use crate::number::{UNDIVIDED, whole_percent};
use crate::svg::{BarRow, BarsText, Picture, bars};

/// A part of the elapsed time: its name, its class in the style, its seconds.
type Part = (&'static str, &'static str, f64);

/// Returns the parts of a row's elapsed time: user and system, or both in one if they cannot be divided; and the rest.
fn parts(row: &BenchRow) -> Option<Vec<Part>> {
    let (elapsed, cpu) = (row.elapsed_s?.median, row.cpu_s?.median);
    let mut parts = match row.divided_cpu() {
        Some([user, system]) => vec![("user", "user", user), ("system", "system", system)],
        None => vec![("CPU time", "s4", cpu)],
    };
    parts.push(("waiting", "wait", (elapsed - cpu).max(0.0)));
    (elapsed > 0.0).then_some(parts)
}

/// Returns the parts of the elapsed time of a group's rows as shares.
pub fn stacked(section: &Section, prefix: &str) -> Option<Picture> {
    let rows: Vec<BarRow> = section.measured().filter_map(|(row, _)| bar(row)).collect();
    let undivided = match section.measured().any(|(row, _)| row.divided_cpu().is_none()) {
        true => format!(" CPU time of one colour {UNDIVIDED}."),
        false => String::new(),
    };
    let description = format!(
        "Shares of the elapsed time: blue in the program and its C library (user), orange in the kernel (system), grey \
         waiting for a device or a processor. At the right is the elapsed time.{undivided}{}",
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
    let sum: f64 = parts.iter().map(|part| part.2).sum();
    let part = |(name, class, part): Part| {
        let share = whole_percent(part / sum);
        let tip = format!("{}: {name} {} ({share} %)", label(row), format_seconds(part));
        (part / sum * 100.0, class.to_string(), tip)
    };
    let elapsed = row.elapsed_s.map_or(0.0, |elapsed| elapsed.median);
    let parts = parts.into_iter().map(part).collect();
    Some(BarRow { label: label(row), parts, figure: format_seconds(elapsed) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture::{key, row};

    #[test]
    fn cpu_time_shorter_than_a_tick_is_not_divided() {
        let group = key("copy", "ext4", ".", "warm", "none");
        let names = |row: &BenchRow| parts(row).expect("parts").iter().map(|part| part.0).collect::<Vec<_>>();
        let long = row(&group, "syscall", 4096, [0.008, 0.004, 0.001], 100);
        assert_eq!(names(&long), ["user", "system", "waiting"]);
        // The kernel has counted all of it as user time.
        let short = row(&group, "copy_file_range", 4096, [0.001, 0.0, 0.001], 100);
        assert_eq!(names(&short), ["CPU time", "waiting"]);
        let measured_in_part = BenchRow { measured_bytes: group.bytes / 10, ..long };
        assert_eq!(names(&measured_in_part), ["CPU time", "waiting"], "a tenth of 12 ms");
    }
}
