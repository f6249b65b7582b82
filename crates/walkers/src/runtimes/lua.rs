//! Lua: its io library is the C library's stdio.

use weir_model::SourceLanguage;

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::stdio(
    "lua",
    "Lua",
    140,
    ProgramDetection::ProgramNames { names: &["lua", "luajit"], marks: &["luaL_", "LUA_INIT", "LUA_PATH"] },
)
.of_language(SourceLanguage::Lua);
