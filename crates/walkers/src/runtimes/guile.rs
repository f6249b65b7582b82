//! Guile: its ports have buffers. No walker reads them.

use crate::runtime_entry::never_linked;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "guile",
    "Guile",
    380,
    UnreadableEntry { buffers: "Guile's own buffers", files: &["libguile-3.0.so"], is_linked_into: never_linked },
);
