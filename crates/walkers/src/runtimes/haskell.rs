//! Haskell: its handles have buffers. No walker reads them.

use crate::runtime_entry::section_contains;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "haskell",
    "Haskell",
    340,
    UnreadableEntry {
        buffers: "Haskell's own buffers",
        files: &[],
        // The name of the variable with the runtime's options.
        is_linked_into: |sections| section_contains(sections, ".rodata", b"GHCRTS"),
    },
);
