//! tee: turns the buffers of its streams off, where it writes through streams at all. Later versions write directly.

use weir_model::{RuntimeFix, RuntimeFixes};

use crate::{ProgramDetection, RuntimeEntry};

const AT_ONCE: RuntimeFix = RuntimeFix::NotNeeded("tee writes at once what it has read");

const OWN_MODE: RuntimeFix =
    RuntimeFix::IfForced("tee turns the buffers of its streams off, unless --force keeps them");

pub(crate) static RUNTIME: RuntimeEntry = {
    let mut entry = RuntimeEntry::stdio(
        "tee",
        "tee",
        125,
        ProgramDetection::ProgramNames { names: &["tee"], marks: &["setvbuf"] },
    );
    entry.facts.fixes = RuntimeFixes {
        unbuffered: AT_ONCE,
        line_buffered: OWN_MODE,
        fully_buffered: OWN_MODE,
        other_streams: OWN_MODE,
        ..RuntimeFixes::STDIO
    };
    entry
};
