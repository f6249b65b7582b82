//! Lua: io.write and print are the C library's.

use super::c::STDIO;
use super::{RuntimeFacts, named};

pub(super) static RUNTIME: RuntimeFacts =
    RuntimeFacts { name: "Lua", is: |program| named(program, &["lua", "luajit"]), ..STDIO };
