//! Haskell: its handles have buffers. No walker reads them.

use crate::runtime_entry::has_c_string;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "haskell",
    "Haskell",
    340,
    UnreadableEntry {
        buffers: "Haskell's own buffers",
        files: &[],
        // The name of the variable with the runtime's options.
        is_linked_into: |sections| has_c_string(sections, "GHCRTS"),
    },
);
