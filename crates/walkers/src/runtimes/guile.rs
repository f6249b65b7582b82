//! Guile: its ports have buffers. No walker reads them.

use weir_model::RuntimeFixes;

use crate::runtime_entry::{OPENED_FILES, never_linked};
use crate::{ProgramDetection, RuntimeEntry, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "guile",
    "Guile",
    92,
    ProgramDetection::ProgramNames { names: &["guile"], marks: &["libguile", "scm_boot_guile"] },
    RuntimeFixes::by_terminal("Guile's own buffers cannot be reached"),
    UnreadableEntry {
        buffers: "Guile's own buffers",
        files: &["libguile-3.0.so", "libguile-2.2.so"],
        is_linked_into: never_linked,
    },
)
.with_unreached(&OPENED_FILES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_contain_guile_are_known_by_its_library() {
        let entry = RUNTIME.unreadable_entry().expect("no walker reads them");
        assert!(entry.names("libguile-3.0.so.1.6.0") && entry.names("libguile-2.2.so.1"));
        assert!(!entry.names("libguilereadline-v-18.so.18"));
    }
}
