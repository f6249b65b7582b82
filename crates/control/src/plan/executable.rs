//! The facts of an ELF executable that a plan depends on.

use std::path::Path;

use weir_sys::elf::{self, ElfSections};

use crate::runtimes::SourceLanguage;

/// The length of a section's searched part. Toolchains put their marks near its start.
const SEARCH_MOST: u64 = 1 << 20;

/// The facts of one executable. For a foreign one only `native` is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutableFacts {
    /// Of this machine's architecture and 64 bits.
    pub native: bool,
    /// It has no interpreter segment, so LD_PRELOAD has no effect.
    pub is_static: bool,
    /// Its interpreter is musl's loader.
    pub musl: bool,
    /// None for C, and if the file does not tell.
    pub language: Option<SourceLanguage>,
}

/// Reads the facts of a file; None if it is not an ELF file or cannot be read.
pub fn read(path: &Path) -> Option<ExecutableFacts> {
    let file = elf::ElfFile::open(path)?;
    if file.is_foreign() {
        return Some(ExecutableFacts::default());
    }
    let loader = file.interpreter().ok()?;
    Some(ExecutableFacts {
        native: file.is_native().ok()?,
        is_static: loader.is_none(),
        musl: loader.is_some_and(|path| path.windows(7).any(|part| part == b"ld-musl")),
        language: language(&file.sections().ok()?),
    })
}

fn language(sections: &ElfSections) -> Option<SourceLanguage> {
    if sections.has(".go.buildinfo") {
        return Some(SourceLanguage::Go);
    }
    let holds = |name: &str, word: &[u8]| {
        let bytes = sections.bytes(name, SEARCH_MOST).unwrap_or_default();
        bytes.windows(word.len()).any(|part| part == word)
    };
    let stripped = !sections.has(".comment");
    if holds(".comment", b"rustc version") || stripped && holds(".rodata", b"RUST_BACKTRACE") {
        return Some(SourceLanguage::Rust);
    }
    let cpp = |name: &[u8]| name.starts_with(b"libstdc++.") || name.starts_with(b"libc++.");
    sections.needed().is_some_and(|names| names.iter().any(|name| cpp(name))).then_some(SourceLanguage::Cpp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_native_rust_program() {
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!((own.native, own.is_static, own.language), (true, false, Some(SourceLanguage::Rust)));
    }

    #[test]
    fn a_file_of_another_format_has_no_facts() {
        assert_eq!(read(Path::new("/proc/self/status")), None);
        assert_eq!(read(Path::new("/nowhere")), None);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i386");
        std::fs::write(&path, b"\x7fELF\x01\x01\x01").unwrap();
        assert!(read(&path).is_some_and(|elf| !elf.native));
    }
}
