//! grep: its output is the C library's, so that its --line-buffered is not needed.

use super::c::STDIO;
use super::{Runtime, named};

pub(super) static RUNTIME: Runtime =
    Runtime { name: "grep", is: |program| named(program, &["grep", "egrep", "fgrep", "zgrep"]), ..STDIO };
