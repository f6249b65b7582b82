//! Julia: its streams have buffers. No walker reads them.

use weir_model::{RuntimeFix, RuntimeFixes};

use crate::runtime_entry::never_linked;
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "julia",
    "Julia",
    98,
    ProgramDetection::ProgramNames { names: &["julia"], marks: &["libjulia", "jl_repl"] },
    RuntimeFixes::all(RuntimeFix::Impossible("Julia's own buffers cannot be reached")),
    UnreadableEntry { buffers: "Julia's own buffers", files: &["libjulia.so"], is_linked_into: never_linked },
);
