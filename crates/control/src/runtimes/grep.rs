//! grep: its output is the C library's, so that its --line-buffered is not needed.

use super::c::STDIO;
use super::{RuntimeFacts, named};

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "grep",
    is: |program| named(program, &["grep", "egrep", "fgrep", "zgrep"]),
    ..STDIO
};
