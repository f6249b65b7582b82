//! Free Pascal: its text files have buffers. No walker reads them.

use weir_model::RuntimeFixes;
use weir_sys::elf::ElfSections;

use crate::runtime_entry::{OPENED_FILES, section_contains};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "pascal",
    "Free Pascal",
    219,
    ProgramDetection::Executable(is_pascal),
    RuntimeFixes::by_terminal("Free Pascal's own buffers cannot be reached"),
    UnreadableEntry { buffers: "Free Pascal's own buffers", files: &[], is_linked_into: is_pascal },
)
.with_unreached(&OPENED_FILES);

/// Looks for the name of the compiler, in a section that only Free Pascal makes.
fn is_pascal(sections: &ElfSections) -> bool {
    section_contains(sections, ".fpcdata", b"FPC ")
}
