//! What this engine could not see in a run, in sentences.

use std::io;

use weir_sys::error::errno_text;

use super::load::Tallies;

/// `unreadable`: why events were not read any more. `sees_exec`: the kernel lets programs look at a process before its
/// execve(2).
pub(super) fn sentences(tallies: &Tallies, unreadable: Option<&io::Error>, sees_exec: bool) -> Vec<String> {
    let mut blind = Vec::new();
    if tallies.lost > 0 {
        blind.push(format!("{} events found no room and are missing; the counters are right", tallies.lost));
    }
    if let Some(error) = unreadable {
        blind.push(format!(
            "all that came after the room for events could not be mapped (mmap: {})",
            errno_text(error)
        ));
    }
    if tallies.compat > 0 {
        blind.push(format!("{} calls of 32-bit programs were not looked at", tallies.compat));
    }
    if tallies.streams > 0 {
        blind.push(format!("{} calls were of more streams than there is room for", tallies.streams));
    }
    if !sees_exec {
        blind.push("what is pending in buffers at execve(2): that needs Linux 6.10".into());
    }
    blind
}
