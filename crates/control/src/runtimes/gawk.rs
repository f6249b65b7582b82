//! gawk: its output is the C library's, and its input takes what a pipe has.

use super::c::STDIO;
use super::{Runtime, named};

pub(super) static RUNTIME: Runtime =
    Runtime { name: "gawk", is: |program| named(program, &["gawk"]), ..STDIO };
