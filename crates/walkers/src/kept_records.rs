//! Records of a log that a program keeps as objects, of which no buffer has bytes, and bytes that it keeps for a function of its own.

use weir_model::Size;
use weir_sys::memory::Memory;

use crate::Walker;

/// Returns the records and bytes that the program of a process keeps, as the subject of a sentence; None if it keeps none.
pub fn kept_records(walkers: &[Box<dyn Walker>], memory: &dyn Memory) -> Option<String> {
    let records = match walkers.iter().map(|walker| walker.kept_records(memory)).sum::<u64>() {
        0 => None,
        1 => Some("a record in a MemoryHandler of Python's logging".into()),
        count => Some(format!("{count} records in a MemoryHandler of Python's logging")),
    };
    let cookies = walkers.iter().flat_map(|walker| walker.cookie_buffers(memory));
    let counts: Vec<u64> = cookies.map(|one| one.pending_bytes).collect();
    let bytes = match (counts.len(), Size(counts.iter().sum())) {
        (0, _) => None,
        (1, size) => Some(format!("{size} in a stream of fopencookie(3)")),
        (count, size) => Some(format!("{size} in {count} streams of fopencookie(3)")),
    };
    let all: Vec<String> = records.into_iter().chain(bytes).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}
