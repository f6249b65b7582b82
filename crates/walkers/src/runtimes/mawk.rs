//! mawk: writes through the C library's stdio.

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};

use crate::{ProgramDetection, RuntimeEntry};

/// mawk fills its input buffer before it processes the first line of a pipe, unless it is interactive.
const INTERACTIVE: RuntimeFix = RuntimeFix::Options {
    options: &["-W", "interactive"],
    effect: "mawk -W interactive: it reads lines as they come and writes them at once",
};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("mawk"),
        name: "mawk",
        language: SourceLanguage::Awk,
        fixes: RuntimeFixes {
            unbuffered: INTERACTIVE,
            line_buffered: INTERACTIVE,
            max_delay: INTERACTIVE,
            ..RuntimeFixes::STDIO
        },
        limits: RuntimeLimits { coalesce: None },
    },
    ..RuntimeEntry::stdio("mawk", "mawk", 100, ProgramDetection::ProgramNames(&["mawk"]))
};
