//! Lua: io.write and print are the C library's.

use super::c::STDIO;
use super::{Runtime, named};

pub(super) static RUNTIME: Runtime =
    Runtime { name: "Lua", is: |program| named(program, &["lua", "luajit"]), ..STDIO };
