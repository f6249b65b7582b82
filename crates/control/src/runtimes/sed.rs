//! sed: its streams are the C library's, so that its -u is not needed.

use super::c::STDIO;
use super::{RuntimeFacts, named};

pub(super) static RUNTIME: RuntimeFacts =
    RuntimeFacts { name: "sed", is: |program| named(program, &["sed", "ssed"]), ..STDIO };
