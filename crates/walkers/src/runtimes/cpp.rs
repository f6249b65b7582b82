//! C++: std::cout writes through the C library's stdout unless the program calls sync_with_stdio(false).

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};
use weir_sys::elf::ElfSections;

use crate::{ProgramDetection, RuntimeEntry};

const OUTSIDE: RuntimeFix =
    RuntimeFix::OutsideExcept("std::cout's buffer after sync_with_stdio(false), nor an ofstream's");

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("cpp"),
        name: "C++",
        language: SourceLanguage::Cpp,
        fixes: RuntimeFixes { max_delay: OUTSIDE, rescue: OUTSIDE, ..RuntimeFixes::STDIO },
        limits: RuntimeLimits { coalesce: None },
    },
    ..RuntimeEntry::stdio("cpp", "C++", 220, ProgramDetection::Executable(is_cpp))
};

fn is_cpp(sections: &ElfSections) -> bool {
    let is_library = |name: &[u8]| name.starts_with(b"libstdc++.") || name.starts_with(b"libc++.");
    sections.needed().is_some_and(|names| names.iter().any(|name| is_library(name)))
}
