//! What the backend could not observe in a run, as sentences for the report.

use std::io;

use weir_sys::error::errno_text;

use super::load::Tallies;

/// `unreadable` is the error that ended the reading of the ring buffer. `sees_exec` is whether the kernel has a tracepoint
/// before the memory is replaced at execve(2).
pub(super) fn sentences(tallies: &Tallies, unreadable: Option<&io::Error>, sees_exec: bool) -> Vec<String> {
    let mut blind = Vec::new();
    if tallies.lost_events > 0 {
        blind.push(format!(
            "{} events dropped: ring buffer full; the counters are exact",
            tallies.lost_events
        ));
    }
    if let Some(error) = unreadable {
        blind.push(format!(
            "all events after the ring buffer could not be mapped (mmap: {})",
            errno_text(error)
        ));
    }
    if tallies.compat_calls > 0 {
        blind.push(format!("{} calls of 32-bit programs were not decoded", tallies.compat_calls));
    }
    if tallies.lost_streams > 0 {
        blind.push(format!("{} calls were not counted: too many streams", tallies.lost_streams));
    }
    if !sees_exec {
        blind.push("bytes pending in buffers at execve(2): that needs Linux 6.10".into());
    }
    blind
}
