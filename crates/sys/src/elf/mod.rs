//! ELF files of 64 bits: the one reader, which leaves it to others to judge what they mean. A file is read only as far as
//! is asked: a process starts in microseconds.

mod gnu_hash;

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::read::{ReadCache, Result};
use object::{LittleEndian, ReadRef, elf};

use gnu_hash::Exported;

type Header = elf::FileHeader64<LittleEndian>;
type Data<'data> = &'data ReadCache<File>;
type Symbol = elf::Sym64<LittleEndian>;

const SYMBOL_BYTES: u64 = size_of::<Symbol>() as u64;

/// A file that begins as ELF files do.
#[derive(Debug)]
pub struct ElfFile {
    data: ReadCache<File>,
    foreign: bool,
}

/// A part of the file that is loaded.
pub type ElfSegment = elf::ProgramHeader64<LittleEndian>;

/// A part of the file that the kernel maps (PT_LOAD).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MappedSegment {
    /// Offsets in the file.
    pub file: Range<u64>,
    /// In the image's own addresses.
    pub address: u64,
}

/// A function that a symbol table names, in the image's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FunctionSymbol<'data> {
    pub address: u64,
    pub bytes: u64,
    pub name: &'data [u8],
}

/// The sections of a file.
#[derive(Debug)]
pub struct ElfSections<'data> {
    table: SectionTable<'data, Header, Data<'data>>,
    data: Data<'data>,
}

impl ElfFile {
    /// None: it cannot be read, or is no ELF file.
    pub fn open(path: &Path) -> Option<Self> {
        Self::of(File::open(path).ok()?)
    }

    /// The same of a file that is open.
    pub fn of(file: File) -> Option<Self> {
        let data = ReadCache::new(file);
        let ident = (&data).read_bytes_at(0, 6).ok().filter(|ident| ident.starts_with(&elf::ELFMAG))?;
        let foreign = ident[4] != elf::ELFCLASS64.0 || ident[5] != elf::ELFDATA2LSB.0;
        Some(Self { data, foreign })
    }

    /// It is of 32 bits or of another byte order: nothing else can be told of it.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// It is of this machine's architecture.
    pub fn is_native(&self) -> Result<bool> {
        let own = if cfg!(target_arch = "x86_64") { elf::EM_X86_64 } else { elf::EM_AARCH64 };
        Ok(self.header()?.e_machine(LittleEndian) == own)
    }

    /// Its addresses are relative to where it is loaded (PIE, shared object).
    pub fn is_relative(&self) -> Result<bool> {
        Ok(self.header()?.e_type(LittleEndian) == elf::ET_DYN)
    }

    /// The program interpreter that it names: the loader of its libraries.
    pub fn interpreter(&self) -> Result<Option<&[u8]>> {
        for segment in self.segments()? {
            if let Some(path) = segment.interpreter(LittleEndian, &self.data)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Returns the program headers.
    pub fn segments(&self) -> Result<&[ElfSegment]> {
        self.header()?.program_headers(LittleEndian, &self.data)
    }

    /// Returns the segments that the kernel maps.
    pub fn mapped_segments(&self) -> Result<Vec<MappedSegment>> {
        let mapped = self.segments()?.iter().filter(|one| one.p_type(LittleEndian) == elf::PT_LOAD);
        let of = |one: &ElfSegment| {
            let offset = one.p_offset(LittleEndian);
            let file = offset..offset.checked_add(one.p_filesz(LittleEndian))?;
            Some(MappedSegment { file, address: one.p_vaddr(LittleEndian) })
        };
        Ok(mapped.filter_map(of).collect())
    }

    /// Its sections, which a file need not have.
    pub fn sections(&self) -> Result<ElfSections<'_>> {
        Ok(ElfSections { table: self.header()?.sections(LittleEndian, &self.data)?, data: &self.data })
    }

    fn header(&self) -> Result<&Header> {
        Header::parse(&self.data)
    }
}

impl<'data> ElfSections<'data> {
    fn named(&self, name: &str) -> Option<&'data elf::SectionHeader64<LittleEndian>> {
        self.table.section_by_name(LittleEndian, name.as_bytes()).map(|(_, section)| section)
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    /// Its bytes, if they are at most so many, and as they are (not compressed).
    pub fn bytes(&self, name: &str, most: u64) -> Option<&'data [u8]> {
        let section = self.named(name)?;
        let plain = section.sh_flags(LittleEndian).0 & elf::SHF_COMPRESSED.0 == 0;
        let small = section.sh_size(LittleEndian) <= most;
        if plain && small { section.data(LittleEndian, self.data).ok() } else { None }
    }

    /// Where it lies in the file's own addresses, and its size.
    pub fn place(&self, name: &str) -> Option<(u64, u64)> {
        self.named(name).map(|section| (section.sh_addr(LittleEndian), section.sh_size(LittleEndian)))
    }

    /// Returns the functions that both symbol tables define, at most `most`.
    pub fn functions(&self, most: usize) -> Vec<FunctionSymbol<'data>> {
        let mut found = Vec::new();
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let Some(section) = self.table.iter().find(|one| one.sh_type(LittleEndian) == kind) else {
                continue;
            };
            let Ok(symbols) = section.data_as_array::<Symbol, _>(LittleEndian, self.data) else { continue };
            let link = object::SectionIndex(section.sh_link(LittleEndian) as usize);
            let Ok(names) = self.table.strings(LittleEndian, self.data, link) else { continue };
            for symbol in symbols.iter().filter(|symbol| is_function(symbol)).take(most - found.len()) {
                let Ok(name) = symbol.name(LittleEndian, names) else { continue };
                let (address, bytes) = (symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
                found.push(FunctionSymbol { address, bytes, name });
            }
        }
        found
    }

    /// The libraries that it needs, by name.
    pub fn needed(&self) -> Option<Vec<&'data [u8]>> {
        let (entries, link) = self.table.dynamic(LittleEndian, self.data).ok()??;
        let strings = self.table.strings(LittleEndian, self.data, link).ok()?;
        let needed = entries.iter().filter(|entry| entry.tag(LittleEndian) == elf::DT_NEEDED);
        Some(needed.filter_map(|entry| entry.string(LittleEndian, strings).ok()).collect())
    }

    /// Looks up names among what a dynamic image exports, by its hash table, and shows those that are there: where each is, and its
    /// size. A few pages of the file are read, however many symbols there are. None: its table has less than `least` bytes, or
    /// it has no such hash table (DT_GNU_HASH), or a broken one.
    pub fn look_up(
        &self,
        least: u64,
        names: &[&'static str],
        mut show: impl FnMut(&'static str, u64, u64),
    ) -> Option<()> {
        let of_type = |wanted| self.table.iter().find(|one| one.sh_type(LittleEndian) == wanted);
        let (hashes, symbols) = (of_type(elf::SHT_GNU_HASH)?, of_type(elf::SHT_DYNSYM)?);
        if symbols.sh_size(LittleEndian) < least {
            return None;
        }
        let link = object::SectionIndex(symbols.sh_link(LittleEndian) as usize);
        let strings = self.table.section(link).ok()?.sh_offset(LittleEndian);
        let exported = Exported {
            data: self.data,
            hashes: hashes.sh_offset(LittleEndian),
            header: self.data.read_at(hashes.sh_offset(LittleEndian)).ok()?,
            symbols: symbols.sh_offset(LittleEndian),
            count: symbols.sh_size(LittleEndian) / SYMBOL_BYTES,
            strings,
        };
        for &name in names {
            if let Some(symbol) = exported.find(name.as_bytes())? {
                show(name, symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
            }
        }
        Some(())
    }

    /// Shows each symbol that is defined: the bytes that begin with its name and a NUL, where it is, and its size. Of a table
    /// that is larger than `exported` (what a dynamic image exports) or `all` (all that it has) none is shown.
    pub fn symbols(
        &self,
        exported: u64,
        all: u64,
        mut show: impl FnMut(&'data [u8], u64, u64),
    ) -> Result<()> {
        for section in self.table.iter() {
            let most = match section.sh_type(LittleEndian) {
                elf::SHT_DYNSYM => exported,
                elf::SHT_SYMTAB => all,
                _ => continue,
            };
            if section.sh_size(LittleEndian) > most {
                continue;
            }
            let symbols: &[Symbol] = section.data_as_array(LittleEndian, self.data)?;
            let link = object::SectionIndex(section.sh_link(LittleEndian) as usize);
            let names = self.table.section(link)?.data(LittleEndian, self.data)?;
            for symbol in symbols {
                let name = names.get(symbol.st_name(LittleEndian) as usize..);
                if let Some(name) = name.filter(|_| is_defined(symbol)) {
                    show(name, symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
                }
            }
        }
        Ok(())
    }
}

fn is_function(symbol: &Symbol) -> bool {
    let section = symbol.st_shndx(LittleEndian);
    let defined = section != elf::SHN_UNDEF && section.0 < elf::SHN_LORESERVE;
    defined && matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC)
}

fn is_defined(symbol: &Symbol) -> bool {
    symbol.st_shndx(LittleEndian) != elf::SHN_UNDEF && symbol.st_value(LittleEndian) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c_library() -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        paths.find(|path| path.contains("/libc.so")).expect("these tests have a C library").to_owned()
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]

        /// Whatever stands in the tables: no panic, no loop without an end, and no name that is not there.
        #[test]
        fn broken_tables_find_nothing_that_is_not_there(
            at in 0usize..4096, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..64),
        ) {
            use std::os::unix::fs::FileExt;
            let text = std::fs::read(c_library()).unwrap();
            let copy = tempfile::tempfile().unwrap();
            copy.write_all_at(&text, 0).unwrap();
            let whole = ElfFile::of(copy.try_clone().unwrap()).unwrap();
            let section = |kind| {
                let table = whole.header().unwrap().sections(LittleEndian, &whole.data).unwrap();
                table.iter().find(|one| one.sh_type(LittleEndian) == kind).unwrap().sh_offset(LittleEndian)
            };
            let header = 0x28; // e_shoff: where the section headers are
            let headers = u64::from_le_bytes(text[header..header + 8].try_into().unwrap());
            for begin in [section(elf::SHT_GNU_HASH), section(elf::SHT_DYNSYM), headers] {
                copy.write_all_at(&text, 0).unwrap();
                copy.write_all_at(&bytes, begin + at as u64).unwrap();
                let Some(broken) = ElfFile::of(copy.try_clone().unwrap()) else { continue };
                let Ok(sections) = broken.sections() else { continue };
                let names = ["execve", "no_such_name"];
                let _ = sections.look_up(1, &names, |name, _, _| assert_eq!(name, "execve"));
            }
        }
    }

    #[test]
    fn names_that_are_looked_up_are_those_of_all_symbols() {
        let elf = ElfFile::open(Path::new(&c_library())).unwrap();
        let sections = elf.sections().unwrap();
        const NAMES: [&str; 7] =
            ["_IO_list_all", "stdin", "stdout", "execve", "write", "no_such_name", "fopen"];
        let mut found = Vec::new();
        assert!(sections.look_up(1, &NAMES, |name, at, bytes| found.push((name, at, bytes))).is_some());
        assert_eq!(found.iter().map(|one| one.0).filter(|name| *name == "no_such_name").count(), 0);
        assert!(found.iter().any(|one| one.0 == "_IO_list_all") && found.len() >= 5, "{found:?}");
        let mut all = Vec::new();
        let show = |name: &[u8], at: u64, bytes: u64| {
            let end = name.iter().position(|&byte| byte == 0).unwrap();
            all.push((String::from_utf8_lossy(&name[..end]).into_owned(), at, bytes));
        };
        sections.symbols(u64::MAX, 0, show).unwrap();
        for (name, at, bytes) in found {
            assert!(all.contains(&(name.to_string(), at, bytes)), "{name}");
        }
        assert!(sections.look_up(u64::MAX, &NAMES, |_, _, _| panic!("it is small")).is_none());
    }

    #[test]
    fn this_test_is_of_this_machine() {
        let own = ElfFile::open(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.is_native().unwrap() && !own.is_foreign());
        let interpreter = own.interpreter().unwrap().unwrap();
        assert!(interpreter.starts_with(b"/") && own.segments().unwrap().len() > 2);
        let sections = own.sections().unwrap();
        assert!(sections.has(".text") && !sections.has(".no-such-section"));
        assert!(sections.needed().unwrap().iter().any(|name| name.starts_with(b"libc.so")));
        assert!(sections.bytes(".comment", 1 << 20).unwrap().windows(5).any(|part| part == b"rustc"));
        assert_eq!(sections.bytes(".comment", 4), None, "it has more than that");
    }

    #[test]
    fn symbols_have_their_names_and_places() {
        let own = ElfFile::open(&std::env::current_exe().unwrap()).unwrap();
        let (mut main, mut undefined) = (0, 0);
        let show = |name: &[u8], at: u64, _bytes: u64| {
            main += u32::from(name.starts_with(b"main\0"));
            undefined += u32::from(at == 0);
        };
        own.sections().unwrap().symbols(u64::MAX, u64::MAX, show).unwrap();
        assert!(main > 0 && undefined == 0, "{main} {undefined}");
    }

    #[test]
    fn files_of_other_machines_and_others_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = |bytes: &[u8]| {
            let path = dir.path().join("file");
            std::fs::write(&path, bytes).unwrap();
            ElfFile::open(&path)
        };
        assert!(file(b"\x7fELF\x01\x01\x01").is_some_and(|elf| elf.is_foreign()));
        assert!(file(b"\x7fELF\x02\x02\x01").is_some_and(|elf| elf.is_foreign()));
        let short = file(b"\x7fELF\x02\x01\x01").unwrap();
        assert!(!short.is_foreign() && short.is_native().is_err() && short.sections().is_err());
        assert!(file(b"#!/bin/sh\n").is_none() && file(b"\x7fELF").is_none());
        assert!(ElfFile::open(Path::new("/no/such/file")).is_none());
    }
}
