//! mawk: its output is the C library's; from a pipe it waits for a whole buffer, unless it is interactive.

use super::c::STDIO;
use super::{Remedy, Runtime, named};

const INTERACTIVE: Remedy = Remedy::Options(
    &["-W", "interactive"],
    "mawk -W interactive: it reads lines as they come and writes them at once",
);

pub(super) static RUNTIME: Runtime = Runtime {
    name: "mawk",
    is: |program| named(program, &["mawk"]),
    none: INTERACTIVE,
    line: INTERACTIVE,
    delay: INTERACTIVE,
    ..STDIO
};
