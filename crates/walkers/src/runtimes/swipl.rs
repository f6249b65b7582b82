//! SWI-Prolog: its streams have buffers. No walker reads them.

use weir_model::RuntimeFixes;

use crate::runtime_entry::{OPENED_FILES_AND_LINE, never_linked};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "swipl",
    "SWI-Prolog",
    84,
    ProgramDetection::ProgramNames { names: &["swipl", "prolog"], marks: &["libswipl", "PL_initialise"] },
    RuntimeFixes::by_line("SWI-Prolog's own buffers cannot be reached"),
    UnreadableEntry {
        buffers: "SWI-Prolog's own buffers",
        files: &["swipl", "libswipl.so"],
        is_linked_into: never_linked,
    },
)
.with_unreached(&OPENED_FILES_AND_LINE);
