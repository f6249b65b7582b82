//! Fortran: libgfortran has a buffer for each unit. No walker reads them; its variables turn them off.

use weir_model::{RuntimeFix, RuntimeFixes, RuntimeLimits};
use weir_sys::elf::ElfSections;

use crate::runtime_entry::{OPENED_FILES, has_c_string};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

const UNBUFFERED: RuntimeFix = RuntimeFix::Environment {
    variables: &[("GFORTRAN_UNBUFFERED_PRECONNECTED", "1")],
    effect: "GFORTRAN_UNBUFFERED_PRECONNECTED=1: each record of standard output is written at once",
};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "fortran",
    "Fortran",
    // A program of C++ can use a library of Fortran.
    225,
    ProgramDetection::Executable(uses_library),
    RuntimeFixes {
        fully_buffered: RuntimeFix::Impossible("libgfortran buffers standard output only if it is a file"),
        other_streams: RuntimeFix::Impossible(
            "libgfortran's files have its own buffers; GFORTRAN_UNBUFFERED_ALL=1 turns all of them off",
        ),
        ..RuntimeFixes::all(UNBUFFERED)
    },
    UnreadableEntry {
        buffers: "Fortran's own buffers",
        files: &["libgfortran.so"],
        is_linked_into: uses_library,
    },
)
.with_limits(RuntimeLimits {
    coalesce: Some("libgfortran handles SIGSYS, the signal by which calls would be intercepted"),
    ..RuntimeLimits::NONE
})
.with_unreached(&OPENED_FILES);

/// Looks for the library among those that the file needs, and in the file for the name of a variable that the library reads.
fn uses_library(sections: &ElfSections) -> bool {
    let needs = |names: Vec<&[u8]>| names.iter().any(|name| name.starts_with(b"libgfortran.so"));
    sections.needed().is_some_and(needs) || has_c_string(sections, "GFORTRAN_UNBUFFERED_ALL")
}
