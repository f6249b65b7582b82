//! Guile: its ports have buffers. No walker reads them.

use weir_model::RuntimeFixes;

use crate::runtime_entry::{OPENED_FILES, never_linked};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "guile",
    "Guile",
    92,
    ProgramDetection::ProgramNames(&["guile"]),
    RuntimeFixes::by_terminal("Guile's own buffers cannot be reached"),
    UnreadableEntry {
        buffers: "Guile's own buffers",
        files: &["libguile-3.0.so"],
        is_linked_into: never_linked,
    },
)
.with_unreached(&OPENED_FILES);
