//! SBCL: its streams have buffers. No walker reads them.

use weir_model::RuntimeFixes;
use weir_sys::elf::ElfSections;

use crate::runtime_entry::{OPENED_FILES_AND_LINE, has_c_string};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "sbcl",
    "SBCL",
    218,
    ProgramDetection::Executable(is_sbcl),
    RuntimeFixes::by_line("SBCL's own buffers cannot be reached"),
    UnreadableEntry { buffers: "SBCL's own buffers", files: &[], is_linked_into: is_sbcl },
)
.with_unreached(&OPENED_FILES_AND_LINE);

/// Looks for the name of the variable with SBCL's folder, also in a saved program.
fn is_sbcl(sections: &ElfSections) -> bool {
    has_c_string(sections, "SBCL_HOME")
}
