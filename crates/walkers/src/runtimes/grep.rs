//! grep: writes through the C library's stdio, and needs no option --line-buffered.

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::stdio(
    "grep",
    "grep",
    120,
    ProgramDetection::ProgramNames {
        names: &["grep", "egrep", "fgrep", "zgrep"],
        marks: &["GREP_COLOR", "BusyBox", "toybox"],
    },
);
