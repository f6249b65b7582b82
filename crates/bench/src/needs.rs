//! Disk and memory that a run needs, checked before the start.

use weir_model::duration::format_seconds;
use weir_model::number::counted;

use crate::axes::Workload;
use crate::error::{Error, Result};
use crate::plan::Cell;

/// Returns the disk space in bytes that a run needs in the directory with index `directory`: for the largest input and
/// the largest output. Cells share the input, and each output is removed before the next one.
pub fn needed_bytes(cells: &[Cell], directory: usize) -> u64 {
    let in_directory = || cells.iter().filter(|cell| cell.directory == directory && cell.cannot.is_none());
    let largest = |has: fn(Workload) -> bool| {
        in_directory().filter(|cell| has(cell.workload)).map(|cell| cell.bytes).max().unwrap_or(0)
    };
    largest(Workload::has_input).saturating_add(largest(Workload::has_output))
}

/// Least time in seconds that a row takes beside its buffers: a pilot run and a sample of about 10 ms each, with start and
/// preparation.
const MIN_ROW_S: f64 = 0.03;
/// Samples that a row has at least: the pilot's and one of the rounds.
const STARTS: f64 = 2.0;
/// Least bytes of a buffer whose first touch is counted as time: a smaller one takes a few milliseconds.
const LARGE_BYTES: u64 = 16 << 20;

/// Returns the least seconds of a run, which can exceed its budget. Each sample touches its buffers; `touch_s` returns the
/// seconds for a byte.
fn least_s(cells: &[Cell], touch_s: impl FnOnce() -> f64) -> f64 {
    let measured = || cells.iter().filter(|cell| cell.cannot.is_none());
    let large = measured().map(Cell::memory_bytes).filter(|bytes| *bytes >= LARGE_BYTES);
    let large: f64 = large.map(|bytes| bytes as f64).sum();
    let touching = if large > 0.0 { large * STARTS * touch_s() } else { 0.0 };
    measured().count() as f64 * MIN_ROW_S + touching
}

/// Returns the seconds that it takes to allocate and fill a byte here, measured now.
fn touch_s() -> f64 {
    const BYTES: usize = 32 << 20;
    let start = std::time::Instant::now();
    std::hint::black_box(vec![1u8; BYTES]);
    start.elapsed().as_secs_f64() / BYTES as f64
}

/// Returns a sentence if a run takes longer than its budget in seconds, because each row is measured at least once.
pub fn small_budget(cells: &[Cell], budget_s: f64) -> Option<String> {
    let needed_s = least_s(cells, touch_s);
    let rows = counted(cells.iter().filter(|cell| cell.cannot.is_none()).count() as u64, "row");
    (needed_s > budget_s).then(|| {
        format!(
            "{rows}: at least about {}; the budget of {} gives each row one sample: use a longer --budget, shorter \
             lists or smaller buffers",
            format_seconds(needed_s),
            format_seconds(budget_s)
        )
    })
}

/// Fails if the buffers of the largest cell take more than 90 % of the `available` bytes of memory. Checks nothing if
/// `available` is `None`.
pub fn check_memory(cells: &[Cell], available: Option<u64>) -> Result<()> {
    let Some(available) = available else { return Ok(()) };
    match cells.iter().max_by_key(|cell| cell.memory_bytes()) {
        Some(cell) if cell.memory_bytes() > available / 10 * 9 => Err(Error::Failed(format!(
            "{}: not enough memory: its buffers take {}, {} are available (ENOMEM); use smaller --records, --buffer, \
             --vector or --queue-depth",
            cell.label(),
            weir_model::Size(cell.memory_bytes()),
            weir_model::Size(available)
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plan::Axes;

    #[test]
    fn the_least_time_of_a_run_includes_its_buffers() {
        let cells = |record| {
            let axes = Axes { records: vec![record], methods: vec!["syscall".into()], ..fixture::axes() };
            axes.cells(1).unwrap()
        };
        assert!((least_s(&cells(4096), || panic!("small buffers")) - MIN_ROW_S).abs() < 1e-9);
        let large = least_s(&cells(1 << 30), || 1e-9);
        assert!(large > 2.0 && large < 2.3, "{large}");
        assert_eq!(small_budget(&cells(4096), 1.0), None);
        let sentence = small_budget(&cells(4096), 0.01).unwrap();
        assert!(sentence.starts_with("1 row: at least about 30"), "{sentence}");
    }
}
