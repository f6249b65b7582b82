//! ELF files of 64 bits: the one reader, which leaves it to others to judge what they mean. A file is read only as far as
//! is asked: a process starts in microseconds.

use std::fs::File;
use std::path::Path;

use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::read::{ReadCache, Result};
use object::{LittleEndian, ReadRef, elf};

type Header = elf::FileHeader64<LittleEndian>;
type Data<'data> = &'data ReadCache<File>;

/// A file that begins as ELF files do.
#[derive(Debug)]
pub struct Elf {
    data: ReadCache<File>,
    foreign: bool,
}

/// A part of the file that is loaded.
pub(crate) type Segment = elf::ProgramHeader64<LittleEndian>;

/// The sections of a file.
#[derive(Debug)]
pub struct Sections<'data> {
    table: SectionTable<'data, Header, Data<'data>>,
    data: Data<'data>,
}

impl Elf {
    /// None: it cannot be read, or is no ELF file.
    pub fn open(path: &Path) -> Option<Self> {
        Self::of(File::open(path).ok()?)
    }

    /// The same of a file that is open.
    pub(crate) fn of(file: File) -> Option<Self> {
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
    pub(crate) fn is_relative(&self) -> Result<bool> {
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

    pub(crate) fn segments(&self) -> Result<&[Segment]> {
        self.header()?.program_headers(LittleEndian, &self.data)
    }

    /// Its sections, which a file need not have.
    pub fn sections(&self) -> Result<Sections<'_>> {
        Ok(Sections { table: self.header()?.sections(LittleEndian, &self.data)?, data: &self.data })
    }

    fn header(&self) -> Result<&Header> {
        Header::parse(&self.data)
    }
}

impl<'data> Sections<'data> {
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
    pub(crate) fn place(&self, name: &str) -> Option<(u64, u64)> {
        self.named(name).map(|section| (section.sh_addr(LittleEndian), section.sh_size(LittleEndian)))
    }

    /// The libraries that it needs, by name.
    pub fn needed(&self) -> Option<Vec<&'data [u8]>> {
        let (entries, link) = self.table.dynamic(LittleEndian, self.data).ok()??;
        let strings = self.table.strings(LittleEndian, self.data, link).ok()?;
        let needed = entries.iter().filter(|entry| entry.tag(LittleEndian) == elf::DT_NEEDED);
        Some(needed.filter_map(|entry| entry.string(LittleEndian, strings).ok()).collect())
    }

    /// Shows each symbol that is defined: the bytes that begin with its name and a NUL, where it is, and its size. Of a table
    /// that is larger than `exported` (what a dynamic image exports) or `all` (all that it has) none is shown.
    pub(crate) fn symbols(
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
            let symbols: &[elf::Sym64<LittleEndian>] = section.data_as_array(LittleEndian, self.data)?;
            let link = object::SectionIndex(section.sh_link(LittleEndian) as usize);
            let names = self.table.section(link)?.data(LittleEndian, self.data)?;
            for symbol in symbols {
                let at = symbol.st_value(LittleEndian);
                let defined = symbol.st_shndx(LittleEndian) != elf::SHN_UNDEF && at != 0;
                if let Some(name) = names.get(symbol.st_name(LittleEndian) as usize..).filter(|_| defined) {
                    show(name, at, symbol.st_size(LittleEndian));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_of_this_machine() {
        let own = Elf::open(&std::env::current_exe().unwrap()).unwrap();
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
        let own = Elf::open(&std::env::current_exe().unwrap()).unwrap();
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
            Elf::open(&path)
        };
        assert!(file(b"\x7fELF\x01\x01\x01").is_some_and(|elf| elf.is_foreign()));
        assert!(file(b"\x7fELF\x02\x02\x01").is_some_and(|elf| elf.is_foreign()));
        let short = file(b"\x7fELF\x02\x01\x01").unwrap();
        assert!(!short.is_foreign() && short.is_native().is_err() && short.sections().is_err());
        assert!(file(b"#!/bin/sh\n").is_none() && file(b"\x7fELF").is_none());
        assert!(Elf::open(Path::new("/no/such/file")).is_none());
    }
}
