//! Haskell: its handles have buffers. No walker reads them.

use weir_model::RuntimeFixes;
use weir_sys::elf::ElfSections;

use crate::runtime_entry::{OPENED_FILES, has_c_string};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "haskell",
    "Haskell",
    216,
    ProgramDetection::Executable(is_haskell),
    RuntimeFixes::by_terminal("Haskell's own buffers cannot be reached"),
    UnreadableEntry { buffers: "Haskell's own buffers", files: &[], is_linked_into: is_haskell },
)
.with_unreached(&OPENED_FILES);

/// Looks for the name of the variable with the runtime's options.
fn is_haskell(sections: &ElfSections) -> bool {
    has_c_string(sections, "GHCRTS")
}
