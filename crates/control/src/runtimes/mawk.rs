//! mawk: its output is the C library's; from a pipe it waits for a whole buffer, unless it is interactive.

use super::c::STDIO;
use super::{RuntimeFacts, RuntimeFix, named};

const INTERACTIVE: RuntimeFix = RuntimeFix::Options(
    &["-W", "interactive"],
    "mawk -W interactive: it reads lines as they come and writes them at once",
);

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "mawk",
    is: |program| named(program, &["mawk"]),
    none: INTERACTIVE,
    line: INTERACTIVE,
    delay: INTERACTIVE,
    ..STDIO
};
