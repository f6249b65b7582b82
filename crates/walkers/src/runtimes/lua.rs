//! Lua: its io library is the C library's stdio.

use weir_model::SourceLanguage;

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry =
    RuntimeEntry::stdio("lua", "Lua", 140, ProgramDetection::ProgramNames(&["lua", "luajit"]))
        .of_language(SourceLanguage::Lua);
