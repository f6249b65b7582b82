//! Records of a log that a program keeps as objects: no buffer has bytes of them.

use weir_sys::memory::Memory;

use crate::Walker;

/// Returns the records that the program of a process keeps, as the subject of a sentence; None if it keeps none.
pub fn kept_records(walkers: &[Box<dyn Walker>], memory: &dyn Memory) -> Option<String> {
    match walkers.iter().map(|walker| walker.kept_records(memory)).sum::<u64>() {
        0 => None,
        1 => Some("a record in a MemoryHandler of Python's logging".into()),
        count => Some(format!("{count} records in a MemoryHandler of Python's logging")),
    }
}
