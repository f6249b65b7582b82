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
    ProgramDetection::Executable(is_program),
    RuntimeFixes {
        fully_buffered: RuntimeFix::Impossible("libgfortran buffers standard output only if it is a file"),
        other_streams: RuntimeFix::Impossible(
            "libgfortran's files have its own buffers; GFORTRAN_UNBUFFERED_ALL=1 turns all of them off",
        ),
        ..RuntimeFixes::all(UNBUFFERED)
    },
    UnreadableEntry {
        buffers: "Fortran's own buffers",
        // Many libraries of mathematics load it, and have no units.
        files: &[],
        is_linked_into: has_units,
    },
)
.with_limits(RuntimeLimits {
    coalesce: Some("libgfortran handles SIGSYS, the signal by which calls would be intercepted"),
    ..RuntimeLimits::NONE
})
.with_unreached(&OPENED_FILES);

/// Functions that Fortran's main program calls first.
const OF_MAIN: [&str; 2] = ["_gfortran_set_args", "_gfortran_set_options"];
/// The function of OPEN.
const OPEN: &str = "_gfortran_st_open";
/// The function of WRITE and PRINT. Libraries of mathematics have it too, for a message before they end the program.
const WRITE: &str = "_gfortran_st_write";

/// Returns whether an executable is written in Fortran: it has a main program or output of Fortran, or the library is linked into it.
fn is_program(sections: &ElfSections) -> bool {
    let is_executable = sections.has(".interp") || sections.needed().is_none_or(|names| names.is_empty());
    let uses = |name: &str| sections.imports(name.as_bytes());
    is_executable
        && (OF_MAIN.into_iter().chain([OPEN, WRITE]).any(uses)
            || has_c_string(sections, "GFORTRAN_UNBUFFERED_ALL"))
}

/// Returns whether an executable is written in Fortran, or a library opens units.
fn has_units(sections: &ElfSections) -> bool {
    is_program(sections) || sections.imports(OPEN.as_bytes())
}
