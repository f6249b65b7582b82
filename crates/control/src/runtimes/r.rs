//! R: output on the console is the C library's.

use super::c::STDIO;
use super::{RuntimeFacts, named};

pub(super) static RUNTIME: RuntimeFacts =
    RuntimeFacts { name: "R", is: |program| named(program, &["R", "Rscript"]), ..STDIO };
