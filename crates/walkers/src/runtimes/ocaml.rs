//! OCaml: its channels have buffers of 64 KiB. No walker reads them.

use crate::runtime_entry::section_contains;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "ocaml",
    "OCaml",
    330,
    UnreadableEntry {
        buffers: "OCaml's own buffers",
        files: &[],
        // The name of the variable with the runtime's options.
        is_linked_into: |sections| section_contains(sections, ".rodata", b"OCAMLRUNPARAM"),
    },
);
