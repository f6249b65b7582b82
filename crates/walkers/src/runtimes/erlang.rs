//! Erlang: its ports and files have buffers. No walker reads them.

use crate::runtime_entry::never_linked;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "erlang",
    "Erlang",
    370,
    UnreadableEntry {
        buffers: "Erlang's own buffers",
        files: &["beam", "beam.smp"],
        is_linked_into: never_linked,
    },
);
