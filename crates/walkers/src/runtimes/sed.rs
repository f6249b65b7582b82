//! sed: writes through the C library's stdio, and needs no option -u.

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::stdio(
    "sed",
    "sed",
    110,
    ProgramDetection::ProgramNames {
        names: &["sed", "ssed"],
        marks: &["GNU sed", "super-sed", "BusyBox", "toybox"],
    },
);
