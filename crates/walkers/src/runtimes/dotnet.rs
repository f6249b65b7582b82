//! .NET and Mono: their streams have buffers. No walker reads them.

use crate::runtime_entry::never_linked;
use crate::{RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "dotnet",
    ".NET",
    350,
    UnreadableEntry {
        buffers: ".NET's own buffers",
        files: &["libcoreclr.so", "mono", "mono-sgen", "libmonosgen-2.0.so"],
        is_linked_into: never_linked,
    },
);
