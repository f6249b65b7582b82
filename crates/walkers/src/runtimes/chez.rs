//! Chez Scheme: its ports have buffers. No walker reads them.

use weir_model::RuntimeFixes;
use weir_sys::elf::ElfSections;

use crate::runtime_entry::{OPENED_FILES_AND_LINE, has_c_string};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "chez",
    "Chez Scheme",
    217,
    ProgramDetection::Executable(is_chez),
    RuntimeFixes::by_line("Chez Scheme's own buffers cannot be reached"),
    UnreadableEntry { buffers: "Chez Scheme's own buffers", files: &[], is_linked_into: is_chez },
)
.with_unreached(&OPENED_FILES_AND_LINE);

/// Looks for the name of the variable with the directories of heap files.
fn is_chez(sections: &ElfSections) -> bool {
    has_c_string(sections, "SCHEMEHEAPDIRS")
}
