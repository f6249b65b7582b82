//! sed: its streams are the C library's, so that its -u is not needed.

use super::c::STDIO;
use super::{Runtime, named};

pub(super) static RUNTIME: Runtime =
    Runtime { name: "sed", is: |program| named(program, &["sed", "ssed"]), ..STDIO };
