//! Disk and memory that a run needs, checked before the start.

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
