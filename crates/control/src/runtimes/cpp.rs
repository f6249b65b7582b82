//! C++: std::cout writes through the C library's stdout, unless the program takes it away from there.

use super::c::STDIO;
use super::{Remedy, Runtime};
use crate::plan::executable::Language;

const UNSYNCED: &str = "what std::cout holds after sync_with_stdio(false), and what an ofstream holds";

pub(super) static RUNTIME: Runtime = Runtime {
    name: "C++",
    is: |program| program.elf.as_ref().is_some_and(|elf| elf.language == Some(Language::Cpp)),
    delay: Remedy::OutsidePart(UNSYNCED),
    rescue: Remedy::OutsidePart(UNSYNCED),
    ..STDIO
};
