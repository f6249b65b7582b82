//! CLISP: its streams have buffers. No walker reads them.

use weir_model::RuntimeFixes;
use weir_sys::elf::ElfSections;

use crate::runtime_entry::{OPENED_FILES_AND_LINE, has_c_string};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "clisp",
    "CLISP",
    86,
    ProgramDetection::ProgramNames { names: &["clisp", "lisp.run"], marks: &["CLISP"] },
    RuntimeFixes::by_line("CLISP's own buffers cannot be reached"),
    UnreadableEntry { buffers: "CLISP's own buffers", files: &["lisp.run"], is_linked_into: is_clisp },
)
.with_unreached(&OPENED_FILES_AND_LINE);

/// Looks for the name of a variable that CLISP reads, also as a part of a saved program.
fn is_clisp(sections: &ElfSections) -> bool {
    has_c_string(sections, "CLISP_LANGUAGE")
}
