//! The facts of an ELF file that decide what can be done with the program.

use std::path::Path;

use weir_sys::elf::{self, ElfSections};

/// Text constants are searched so far for the name of a language.
const SEARCH_MOST: u64 = 1 << 20;

/// An executable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutableFacts {
    /// Of this machine's architecture, with 64 bits.
    pub native: bool,
    /// No loader: no library can be put before its own.
    pub is_static: bool,
    /// Its loader is musl's.
    pub musl: bool,
    /// Compiled from Go, Rust or C++, as far as the file tells.
    pub language: Option<SourceLanguage>,
}

/// A language with streams of its own that a program can be compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLanguage {
    /// Go.
    Go,
    /// Rust.
    Rust,
    /// C++.
    Cpp,
}

/// The facts of a file; None where it is no ELF file, or cannot be read.
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
    fn this_test_is_a_rust_program_of_this_machine() {
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!((own.native, own.is_static, own.language), (true, false, Some(SourceLanguage::Rust)));
    }

    #[test]
    fn what_is_no_elf_file_has_no_facts() {
        assert_eq!(read(Path::new("/proc/self/status")), None);
        assert_eq!(read(Path::new("/nowhere")), None);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i386");
        std::fs::write(&path, b"\x7fELF\x01\x01\x01").unwrap();
        assert!(read(&path).is_some_and(|elf| !elf.native));
    }
}
