//! Shells: what they write themselves goes out at once; all is done for what they run.

use super::c::STDIO;
use super::{RuntimeFacts, named};

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "shell",
    is: |program| named(program, &["sh", "dash", "bash", "rbash", "mksh", "ksh", "zsh", "fish", "yash"]),
    ..STDIO
};
