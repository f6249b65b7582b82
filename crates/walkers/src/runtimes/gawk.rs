//! gawk: writes through the C library's stdio.

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry =
    RuntimeEntry::stdio("gawk", "gawk", 90, ProgramDetection::ProgramNames(&["gawk"]));
