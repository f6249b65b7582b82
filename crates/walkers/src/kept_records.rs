//! Records of a log that a program keeps as objects, of which no buffer has bytes, and bytes that it keeps for a function of its own.

use weir_model::Size;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::Walker;

/// Returns the records and bytes that the program of a process keeps, as the subject of a sentence; None if it keeps none.
pub fn kept_records(walkers: &[Box<dyn Walker>], memory: &dyn Memory) -> Option<String> {
    let records = match walkers.iter().map(|walker| walker.kept_records(memory)).sum::<u64>() {
        0 => None,
        1 => Some("a record in a MemoryHandler of Python's logging".into()),
        count => Some(format!("{count} records in a MemoryHandler of Python's logging")),
    };
    let buffers: Vec<Buffer> = walkers.iter().flat_map(|walker| walker.cookie_buffers(memory)).collect();
    let (of_python, of_c): (Vec<_>, Vec<_>) =
        buffers.into_iter().partition(|one| one.walker == RuntimeId::CPYTHON);
    let bytes = [
        sum(&of_c, "a stream of fopencookie(3)", "streams of fopencookie(3)"),
        sum(
            &of_python,
            "a Python stream over an object of the program",
            "Python streams over objects of the program",
        ),
    ];
    let all: Vec<String> = records.into_iter().chain(bytes.into_iter().flatten()).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// Returns how many bytes are pending in these buffers; None for no buffer.
fn sum(buffers: &[Buffer], one: &str, several: &str) -> Option<String> {
    let size = Size(buffers.iter().map(|buffer| buffer.pending_bytes).sum());
    match buffers.len() {
        0 => None,
        1 => Some(format!("{size} in {one}")),
        count => Some(format!("{size} in {count} {several}")),
    }
}
