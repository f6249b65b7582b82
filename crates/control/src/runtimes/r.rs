//! R: output on the console is the C library's.

use super::c::STDIO;
use super::{Runtime, named};

pub(super) static RUNTIME: Runtime =
    Runtime { name: "R", is: |program| named(program, &["R", "Rscript"]), ..STDIO };
