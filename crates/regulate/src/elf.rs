//! The facts of an ELF file that decide what can be done with the program.

use std::fs::File;
use std::path::Path;

use object::elf;
use object::read::ReadCache;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionTable};
use object::{LittleEndian, ReadRef};

/// Text constants are searched so far for the name of a language.
const SEARCH_MOST: u64 = 1 << 20;

/// An executable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elf {
    /// Of this machine's architecture, with 64 bits.
    pub native: bool,
    /// No loader: no library can be put before its own.
    pub is_static: bool,
    /// Its loader is musl's.
    pub musl: bool,
    /// Compiled from Go, Rust or C++, as far as the file tells.
    pub language: Option<Language>,
}

/// A language with streams of its own that a program can be compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Go.
    Go,
    /// Rust.
    Rust,
    /// C++.
    Cpp,
}

/// The facts of a file; None where it is no ELF file, or cannot be read.
pub fn read(path: &Path) -> Option<Elf> {
    let data = &ReadCache::new(File::open(path).ok()?);
    let ident = data.read_bytes_at(0, 6).ok()?;
    if !ident.starts_with(&elf::ELFMAG) {
        return None;
    }
    if ident[4] != elf::ELFCLASS64.0 || ident[5] != elf::ELFDATA2LSB.0 {
        return Some(Elf::default());
    }
    read_64(data).ok()
}

fn read_64<'data, R: ReadRef<'data>>(data: R) -> object::Result<Elf> {
    let header = elf::FileHeader64::<LittleEndian>::parse(data)?;
    let endian = header.endian()?;
    let own = if cfg!(target_arch = "x86_64") { elf::EM_X86_64 } else { elf::EM_AARCH64 };
    let mut loader = None;
    for segment in header.program_headers(endian, data)? {
        if let Some(path) = segment.interpreter(endian, data)? {
            loader = Some(path.to_vec());
        }
    }
    Ok(Elf {
        native: header.e_machine(endian) == own,
        is_static: loader.is_none(),
        musl: loader.is_some_and(|path| path.windows(7).any(|part| part == b"ld-musl")),
        language: language(&header.sections(endian, data)?, data),
    })
}

type Sections<'data, R> = SectionTable<'data, elf::FileHeader64<LittleEndian>, R>;

fn language<'data, R: ReadRef<'data>>(sections: &Sections<'data, R>, data: R) -> Option<Language> {
    let endian = LittleEndian;
    if sections.section_by_name(endian, b".go.buildinfo").is_some() {
        return Some(Language::Go);
    }
    let holds = |name: &[u8], word: &[u8]| {
        let bytes = section(sections, name, data).unwrap_or_default();
        bytes.windows(word.len()).any(|part| part == word)
    };
    let stripped = sections.section_by_name(endian, b".comment").is_none();
    if holds(b".comment", b"rustc version") || stripped && holds(b".rodata", b"RUST_BACKTRACE") {
        return Some(Language::Rust);
    }
    needs_cpp(sections, data).unwrap_or(false).then_some(Language::Cpp)
}

fn section<'data, R: ReadRef<'data>>(
    sections: &Sections<'data, R>,
    name: &[u8],
    data: R,
) -> Option<&'data [u8]> {
    use object::read::elf::SectionHeader;
    let (_, section) = sections.section_by_name(LittleEndian, name)?;
    (section.sh_size(LittleEndian) <= SEARCH_MOST).then(|| section.data(LittleEndian, data).ok())?
}

fn needs_cpp<'data, R: ReadRef<'data>>(sections: &Sections<'data, R>, data: R) -> Option<bool> {
    let endian = LittleEndian;
    let (entries, link) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED);
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    Some({ names }.any(|name| name.starts_with(b"libstdc++.") || name.starts_with(b"libc++.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_rust_program_of_this_machine() {
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!((own.native, own.is_static, own.language), (true, false, Some(Language::Rust)));
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
