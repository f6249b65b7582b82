//! Julia: its streams have buffers. No walker reads them.

use crate::runtime_entry::never_linked;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "julia",
    "Julia",
    360,
    UnreadableEntry { buffers: "Julia's own buffers", files: &["libjulia.so"], is_linked_into: never_linked },
);
