//! Fortran: libgfortran has a buffer for each unit. No walker reads them.

use crate::runtime_entry::has_c_string;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "fortran",
    "Fortran",
    320,
    UnreadableEntry {
        buffers: "Fortran's own buffers",
        files: &["libgfortran.so"],
        // The name of the variable with the runtime's options.
        is_linked_into: |sections| has_c_string(sections, "GFORTRAN_UNBUFFERED_ALL"),
    },
);
