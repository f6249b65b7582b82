//! The few facts of an ELF file that the walkers need, read once a file: a process starts in microseconds.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use object::elf;
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{LittleEndian, ReadRef};
use weir_model::trace::Walker;

/// The symbols that lead to streams; every other is passed over.
const WANTED: [&str; 8] =
    ["_IO_list_all", "ofl_head", "stdin", "stdout", "stderr", "_PyRuntime", "Py_Version", "weir_flush"];

/// A full symbol table of a dynamic image larger than this is not read: what it exports is enough.
const SYMTAB_MOST: u64 = 4 << 20;

/// Past these many files the cache begins anew: a build makes new programs for ever.
const CACHE_MOST: usize = 1024;

/// What is known of an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    /// Its addresses are relative to where it is loaded (PIE, shared object).
    pub relative: bool,
    /// It has a program interpreter: the C library is another image.
    pub interpreted: bool,
    /// The page of its first segment, in its own addresses.
    pub first: u64,
    /// It is of 32 bits or of another byte order: no walker knows it.
    pub foreign: bool,
    symbols: Vec<(&'static str, u64)>,
}

impl Image {
    /// Where the symbol is, in the image's own addresses.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|(known, _)| *known == name).map(|(_, at)| *at)
    }

    /// Where the symbol is in a process that has the file's first page at `start`.
    pub fn symbol_at(&self, name: &str, start: u64) -> Option<u64> {
        let bias = if self.relative { start.wrapping_sub(self.first) } else { 0 };
        self.symbol(name).map(|at| at.wrapping_add(bias))
    }
}

/// Where a program's list of streams begins, for an engine that walks it in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListHead {
    /// Whose list.
    pub walker: Walker,
    /// Of the pointer to the first stream.
    pub address: u64,
    /// `address` is relative to where the file's address 0 is loaded, otherwise absolute.
    pub relative: bool,
}

/// The head of the list in a C library's file, or in a static program's that has its symbols.
pub fn list_head(elf: &Path) -> Option<ListHead> {
    let image = image(elf)?;
    let (walker, address) = match (image.symbol("_IO_list_all"), image.symbol("ofl_head")) {
        (Some(address), _) => (Walker::Glibc, address),
        (None, Some(address)) => (Walker::Musl, address),
        (None, None) => return None,
    };
    Some(ListHead { walker, address, relative: image.relative })
}

/// Device, inode, time of the last change (seconds, nanoseconds), size.
type Key = (u64, u64, i64, i64, u64);

static CACHE: LazyLock<Mutex<HashMap<Key, Option<Arc<Image>>>>> = LazyLock::new(Mutex::default);

/// The facts of the file; None where it is no ELF file or cannot be read.
pub(crate) fn image(path: &Path) -> Option<Arc<Image>> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file())?;
    let key = (about.dev(), about.ino(), about.mtime(), about.mtime_nsec(), about.size());
    if let Some(known) = CACHE.lock().unwrap_or_else(|broken| broken.into_inner()).get(&key) {
        return known.clone();
    }
    let image = read(file).map(Arc::new);
    let mut cache = CACHE.lock().unwrap_or_else(|broken| broken.into_inner());
    if cache.len() >= CACHE_MOST {
        cache.clear();
    }
    cache.insert(key, image.clone());
    image
}

fn read(file: File) -> Option<Image> {
    let data = &ReadCache::new(file);
    let ident = data.read_bytes_at(0, 6).ok()?;
    if !ident.starts_with(&elf::ELFMAG) {
        return None;
    }
    if ident[4] != elf::ELFCLASS64.0 || ident[5] != elf::ELFDATA2LSB.0 {
        return Some(Image { foreign: true, ..Image::default() });
    }
    read_64(data).ok()
}

fn read_64<'data, R: ReadRef<'data>>(data: R) -> object::Result<Image> {
    let header = elf::FileHeader64::<LittleEndian>::parse(data)?;
    let endian = header.endian()?;
    let mut image = Image { relative: header.e_type(endian) == elf::ET_DYN, ..Image::default() };
    let segments = header.program_headers(endian, data)?;
    image.interpreted = segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP);
    let first = segments.iter().find(|segment| segment.p_type(endian) == elf::PT_LOAD);
    image.first = first.map_or(0, |segment| segment.p_vaddr(endian) & !0xfff);
    for section in header.section_headers(endian, data)? {
        let wanted = match section.sh_type(endian) {
            elf::SHT_DYNSYM => true,
            elf::SHT_SYMTAB => !image.interpreted || section.sh_size(endian) <= SYMTAB_MOST,
            _ => false,
        };
        if wanted {
            add_symbols(&mut image, header, section, data)?;
        }
    }
    Ok(image)
}

fn add_symbols<'data, R: ReadRef<'data>>(
    image: &mut Image,
    header: &elf::FileHeader64<LittleEndian>,
    section: &elf::SectionHeader64<LittleEndian>,
    data: R,
) -> object::Result<()> {
    let endian = LittleEndian;
    let symbols: &[elf::Sym64<LittleEndian>] = section.data_as_array(endian, data)?;
    let sections = header.sections(endian, data)?;
    let strings =
        sections.section(object::SectionIndex(section.sh_link(endian) as usize))?.data(endian, data)?;
    for symbol in symbols {
        // An executable that copies `stdout` into itself defines it too; undefined ones are of no use.
        if symbol.st_shndx(endian) == elf::SHN_UNDEF || symbol.st_value(endian) == 0 {
            continue;
        }
        let name = strings.get(symbol.st_name(endian) as usize..).unwrap_or_default();
        let known = WANTED.iter().find(|wanted| {
            name.starts_with(wanted.as_bytes()) && name.get(wanted.len()).is_some_and(|&end| end == 0)
        });
        if let Some(wanted) = known.filter(|wanted| image.symbol(wanted).is_none()) {
            image.symbols.push((wanted, symbol.st_value(endian)));
        }
    }
    Ok(())
}
