//! Raku on MoarVM: its file handles have buffers. No walker reads them.

use weir_model::RuntimeFixes;

use crate::runtime_entry::{OPENED_FILES, never_linked};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "raku",
    "Raku",
    89,
    ProgramDetection::ProgramNames {
        names: &["raku", "rakudo", "perl6", "moar"],
        marks: &["libmoar", "MVM_"],
    },
    RuntimeFixes::by_terminal("Raku's own buffers cannot be reached"),
    UnreadableEntry { buffers: "Raku's own buffers", files: &["libmoar.so"], is_linked_into: never_linked },
)
.with_unreached(&OPENED_FILES);
