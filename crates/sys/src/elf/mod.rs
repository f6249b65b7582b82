//! Reads 64-bit little-endian ELF files (elf(5)). It reads only the requested parts of a file, because it runs while a
//! process starts.

mod bounded_reads;
mod gnu_hash;
mod static_image;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::read::{ReadCache, Result};
use object::{LittleEndian, ReadRef, elf};

use bounded_reads::{BoundedReads, read_most};
use gnu_hash::ExportedSymbols;
pub use static_image::StaticSegment;

use crate::file_system::open_regular;

type Header = elf::FileHeader64<LittleEndian>;
type Data<'data> = BoundedReads<'data>;
type Symbol = elf::Sym64<LittleEndian>;

/// The most bytes of a section that is searched or kept: weir fills at most 64 MiB for a process.
pub const MAX_SECTION_BYTES: u64 = 60 << 20;
const SYMBOL_BYTES: u64 = size_of::<Symbol>() as u64;

/// A file with the magic number of ELF. Its other contents are checked when they are read.
#[derive(Debug)]
pub struct ElfFile {
    data: ReadCache<File>,
    /// The most bytes of one read.
    most: u64,
    foreign: bool,
}

/// An entry of the program header table.
pub type ElfSegment = elf::ProgramHeader64<LittleEndian>;

/// A segment that the kernel maps (PT_LOAD).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MappedSegment {
    /// The range of offsets in the file.
    pub file: Range<u64>,
    /// The virtual address in the file, without the load bias.
    pub address: u64,
}

/// A function of a symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FunctionSymbol<'data> {
    /// The virtual address in the file, without the load bias.
    pub address: u64,
    pub bytes: u64,
    pub name: &'data [u8],
}

/// The most sections of a file that are searched by name: many times those of a web browser. Each search reads all names.
const MAX_SECTIONS: usize = 4096;

/// The section headers of a file.
#[derive(Debug)]
pub struct ElfSections<'data> {
    table: SectionTable<'data, Header, Data<'data>>,
    data: Data<'data>,
}

impl ElfFile {
    /// Opens a regular file. Returns None if it cannot be read or is no ELF file.
    pub fn open(path: &Path) -> Option<Self> {
        Self::from_file(open_regular(path).ok()?)
    }

    /// Reads the ELF identification of an open file. Returns None if it is no ELF file.
    pub fn from_file(file: File) -> Option<Self> {
        let most = read_most(&file);
        let data = ReadCache::new(file);
        let ident = (&data).read_bytes_at(0, 6).ok().filter(|ident| ident.starts_with(&elf::ELFMAG))?;
        let foreign = ident[4] != elf::ELFCLASS64.0 || ident[5] != elf::ELFDATA2LSB.0;
        Some(Self { data, most, foreign })
    }

    /// Returns whether the file is 32-bit or big-endian. No other method is meaningful for such a file.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Returns whether the file is for the architecture of this machine.
    pub fn is_native(&self) -> Result<bool> {
        let own = if cfg!(target_arch = "x86_64") { elf::EM_X86_64 } else { elf::EM_AARCH64 };
        Ok(self.header()?.e_machine(LittleEndian) == own)
    }

    /// Returns whether addresses are relative to the load bias (PIE, shared object).
    pub fn is_relative(&self) -> Result<bool> {
        Ok(self.header()?.e_type(LittleEndian) == elf::ET_DYN)
    }

    /// Returns the path of the program interpreter (PT_INTERP), the dynamic loader.
    pub fn interpreter(&self) -> Result<Option<&[u8]>> {
        for segment in self.segments()? {
            if let Some(path) = segment.interpreter(LittleEndian, self.reads())? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Returns the program headers.
    pub fn segments(&self) -> Result<&[ElfSegment]> {
        self.header()?.program_headers(LittleEndian, self.reads())
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

    /// Returns the sections. A stripped file may have none, and one with more than [`MAX_SECTIONS`] counts as stripped.
    pub fn sections(&self) -> Result<ElfSections<'_>> {
        let table = self.header()?.sections(LittleEndian, self.reads())?;
        let table = if table.len() <= MAX_SECTIONS { table } else { SectionTable::default() };
        Ok(ElfSections { table, data: self.reads() })
    }

    fn reads(&self) -> BoundedReads<'_> {
        BoundedReads { data: &self.data, most: self.most }
    }

    fn header(&self) -> Result<&Header> {
        Header::parse(self.reads())
    }
}

impl<'data> ElfSections<'data> {
    fn section(&self, name: &str) -> Option<&'data elf::SectionHeader64<LittleEndian>> {
        self.table.section_by_name(LittleEndian, name.as_bytes()).map(|(_, section)| section)
    }

    /// Returns whether the file has a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.section(name).is_some()
    }

    /// Returns the contents of a section; None if it has more than `max_bytes` bytes or is compressed.
    pub fn bytes(&self, name: &str, max_bytes: u64) -> Option<&'data [u8]> {
        let section = self.section(name)?;
        let plain = section.sh_flags(LittleEndian).0 & elf::SHF_COMPRESSED.0 == 0;
        let small = section.sh_size(LittleEndian) <= max_bytes;
        if plain && small { section.data(LittleEndian, self.data).ok() } else { None }
    }

    /// Returns the virtual address of a section, without the load bias, and its size in bytes.
    pub fn address_and_size(&self, name: &str) -> Option<(u64, u64)> {
        self.section(name).map(|section| (section.sh_addr(LittleEndian), section.sh_size(LittleEndian)))
    }

    /// Returns the first section of a type. A file has at most one table of symbols of each type.
    fn first(&self, kind: elf::SectionType) -> Option<&'data elf::SectionHeader64<LittleEndian>> {
        self.table.iter().find(|one| one.sh_type(LittleEndian) == kind)
    }

    /// Returns a table of symbols, and the texts with their names.
    fn symbol_table(
        &self,
        section: &'data elf::SectionHeader64<LittleEndian>,
    ) -> Result<(&'data [Symbol], &'data [u8])> {
        let names = object::SectionIndex(section.sh_link(LittleEndian) as usize);
        let symbols = section.data_as_array(LittleEndian, self.data)?;
        Ok((symbols, self.table.section(names)?.data(LittleEndian, self.data)?))
    }

    /// Returns the functions that .symtab and .dynsym define, at most `max_count`.
    pub fn functions(&self, max_count: usize) -> Vec<FunctionSymbol<'data>> {
        let mut found = Vec::new();
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let table = self.first(kind).and_then(|section| self.symbol_table(section).ok());
            let Some((symbols, names)) = table else { continue };
            for symbol in symbols.iter().filter(|symbol| is_function(symbol)).take(max_count - found.len()) {
                let Some(name) = name_of(symbol, names) else { continue };
                let (address, bytes) = (symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
                found.push(FunctionSymbol { address, bytes, name });
            }
        }
        found
    }

    /// Returns the names of the needed libraries (DT_NEEDED); None if the file is not dynamic.
    pub fn needed(&self) -> Option<Vec<&'data [u8]>> {
        let (entries, link) = self.table.dynamic(LittleEndian, self.data).ok()??;
        let strings = self.table.strings(LittleEndian, self.data, link).ok()?;
        let needed = entries.iter().filter(|entry| entry.tag(LittleEndian) == elf::DT_NEEDED);
        Some(needed.filter_map(|entry| entry.string(LittleEndian, strings).ok()).collect())
    }

    /// Returns whether .symtab exists, or .dynsym for `dynamic`, and has a symbol whose name `is` accepts. None if the file
    /// has no such table.
    pub fn any_symbol(&self, dynamic: bool, mut is: impl FnMut(&[u8]) -> bool) -> Option<bool> {
        let section = self.first(if dynamic { elf::SHT_DYNSYM } else { elf::SHT_SYMTAB })?;
        let (symbols, names) = self.symbol_table(section).ok()?;
        Some(symbols.iter().filter_map(|symbol| name_of(symbol, names)).any(&mut is))
    }

    /// Returns whether the file imports a symbol: .dynsym has it without a definition.
    pub fn imports(&self, name: &[u8]) -> bool {
        let Some(section) = self.first(elf::SHT_DYNSYM) else { return false };
        let Ok((symbols, names)) = self.symbol_table(section) else { return false };
        let is_import = |symbol: &&Symbol| symbol.st_shndx(LittleEndian) == elf::SHN_UNDEF;
        symbols.iter().filter(is_import).any(|symbol| name_of(symbol, names) == Some(name))
    }

    /// Looks up names among the exported symbols by the hash table (DT_GNU_HASH), and calls `on_symbol` with name, address
    /// and size of each that exists. This reads a few pages of the file, however many symbols it has.
    ///
    /// Returns None if .dynsym has less than `min_bytes` bytes, or if the hash table is missing or broken.
    pub fn find_exported(
        &self,
        min_bytes: u64,
        names: &[&'static str],
        mut on_symbol: impl FnMut(&'static str, u64, u64),
    ) -> Option<()> {
        let (hashes, symbols) = (self.first(elf::SHT_GNU_HASH)?, self.first(elf::SHT_DYNSYM)?);
        if symbols.sh_size(LittleEndian) < min_bytes {
            return None;
        }
        let link = object::SectionIndex(symbols.sh_link(LittleEndian) as usize);
        let strings = self.table.section(link).ok()?.sh_offset(LittleEndian);
        let exported = ExportedSymbols {
            data: self.data,
            hashes: hashes.sh_offset(LittleEndian),
            header: self.data.read_at(hashes.sh_offset(LittleEndian)).ok()?,
            symbols: symbols.sh_offset(LittleEndian),
            count: symbols.sh_size(LittleEndian) / SYMBOL_BYTES,
            strings,
        };
        for &name in names {
            if let Some(symbol) = exported.find(name.as_bytes())? {
                on_symbol(name, symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
            }
        }
        Some(())
    }

    /// Calls `on_symbol` for each defined symbol, with the bytes that start with its name and a NUL, its address and size.
    /// Skips .dynsym if it has more than `max_dynsym_bytes`, and .symtab if it has more than `max_symtab_bytes`.
    pub fn symbols(
        &self,
        max_dynsym_bytes: u64,
        max_symtab_bytes: u64,
        mut on_symbol: impl FnMut(&'data [u8], u64, u64),
    ) -> Result<()> {
        for (kind, max_bytes) in [(elf::SHT_DYNSYM, max_dynsym_bytes), (elf::SHT_SYMTAB, max_symtab_bytes)] {
            let Some(section) = self.first(kind).filter(|one| one.sh_size(LittleEndian) <= max_bytes) else {
                continue;
            };
            let (symbols, names) = self.symbol_table(section)?;
            for symbol in symbols {
                let name = names.get(symbol.st_name(LittleEndian) as usize..);
                if let Some(name) = name.filter(|_| is_defined(symbol)) {
                    on_symbol(name, symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of a symbol; None if it is longer than any that a compiler writes.
fn name_of<'data>(symbol: &Symbol, names: &'data [u8]) -> Option<&'data [u8]> {
    const MAX_NAME: usize = 4096;
    let text = names.get(symbol.st_name(LittleEndian) as usize..)?;
    let end = memchr::memchr(0, &text[..text.len().min(MAX_NAME)])?;
    Some(&text[..end])
}

fn is_function(symbol: &Symbol) -> bool {
    let section = symbol.st_shndx(LittleEndian);
    let defined = section != elf::SHN_UNDEF && section.0 < elf::SHN_LORESERVE;
    defined && matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC)
}

fn is_defined(symbol: &Symbol) -> bool {
    symbol.st_shndx(LittleEndian) != elf::SHN_UNDEF && symbol.st_value(LittleEndian) != 0
}
