//! gawk: its output is the C library's, and its input takes what a pipe has.

use super::c::STDIO;
use super::{RuntimeFacts, named};

pub(super) static RUNTIME: RuntimeFacts =
    RuntimeFacts { name: "gawk", is: |program| named(program, &["gawk"]), ..STDIO };
