//! C++: std::cout writes through the C library's stdout, unless the program takes it away from there.

use super::c::STDIO;
use super::{RuntimeFacts, RuntimeFix};
use crate::plan::executable::SourceLanguage;

const UNSYNCED: &str = "what std::cout holds after sync_with_stdio(false), and what an ofstream holds";

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "C++",
    is: |program| program.elf.as_ref().is_some_and(|elf| elf.language == Some(SourceLanguage::Cpp)),
    delay: RuntimeFix::OutsidePart(UNSYNCED),
    rescue: RuntimeFix::OutsidePart(UNSYNCED),
    ..STDIO
};
