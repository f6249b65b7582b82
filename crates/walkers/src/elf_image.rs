//! Reads the facts of an ELF file that walkers need, and caches them for each file.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use object::LittleEndian;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::ProgramHeader;
use weir_model::trace::RuntimeId;
use weir_sys::elf::{ElfFile, ElfSections};
use weir_sys::file_system::{open_regular, open_with_status};

use crate::runtime_entry::section_contains;
use crate::runtimes::FILES;
use crate::runtimes::cpp::FileBufferFacts;
use crate::runtimes::glibc::wide::WIDE_WRITERS;
use crate::runtimes::go::{GoSections, ItabSection};
use crate::runtimes::rust;
use crate::runtimes::rust::layouts::{self, RustLayouts};
use crate::{RuntimeEntry, UnreadableEntry, WalkerEntry};

/// The functions of the C library at which weir sets breakpoints.
const FUNCTIONS: [&str; 2] = ["execve", "write"];

/// The symbols to look up: those that the walkers need, and [`FUNCTIONS`].
static KEPT: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let of_walkers = walkers().flat_map(|walker| walker.symbols);
    of_walkers.chain(&FUNCTIONS).copied().collect()
});

/// The name that replaces the mangled names of `std::io::stdio::STDOUT` of Rust.
pub(crate) const RUST_STDOUT: &str = "std::io::stdio::STDOUT";

/// The symbol of the list of all goroutines of a Go program.
pub(crate) const GOROUTINES: &str = "runtime.allgs";

/// In a larger table of exported symbols the wanted names are looked up; a smaller one is read through. A compiler
/// that takes plugins exports 2 MB of symbols.
const SEARCHED: u64 = 32 << 10;

/// The largest symbol tables that are read, to bound the time for one file: the exported symbols of a dynamic
/// executable, all symbols of it (which adds little to the exported ones), and all symbols of a static executable or
/// a library.
const MAX_DYNAMIC: u64 = 1 << 20;
const MAX_SYMTAB: u64 = 1 << 20;
const MAX_STATIC: u64 = 8 << 20;

/// The number of files at which the cache is cleared: a build runs new programs all the time.
const MAX_CACHE: usize = 1024;

/// Address and size of a symbol, in the image's own addresses.
#[derive(Debug, Clone, Copy)]
struct ElfSymbol {
    name: &'static str,
    address: u64,
    bytes: u64,
}

/// The facts of an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElfImage {
    /// The addresses are relative to the load address (PIE, shared object).
    pub relative: bool,
    /// The file has a program interpreter, so that the C library is another image.
    pub interpreted: bool,
    /// Address of the page of the first segment, in the image's own addresses.
    pub first: u64,
    /// Address of the first executable segment, in the image's own addresses.
    pub code: u64,
    /// The file has 32 bits or another byte order; no walker supports it.
    pub foreign: bool,
    /// Go's compiler made the file. Its symbols are many, and none leads to a stream.
    pub go: bool,
    /// Rust's compiler made the file, and it has debug information.
    pub rust: bool,
    /// Rust's compiler made the file, and it has no debug information.
    pub rust_without_types: bool,
    /// The sections of a Go program that lead to its streams.
    pub go_parts: Option<GoSections>,
    /// Memory layouts of a Rust program's streams; read on first use.
    layouts: OnceLock<Option<Arc<RustLayouts>>>,
    /// The BufWriters of a Rust program that no walker reads; searched on first use.
    hidden_writers: OnceLock<Option<&'static str>>,
    /// The file names a library of a runtime with a walker; searched on first use.
    names_runtime: OnceLock<bool>,
    /// The runtimes without a walker that are linked into the file, or that it uses; searched on first use.
    linked_runtimes: OnceLock<Vec<RuntimeId>>,
    /// Runtimes whose marks the file has; searched on first use.
    marked_runtimes: OnceLock<Vec<RuntimeId>>,
    /// Addresses and sizes of the sections that can have C++ type information: constants that the loader relocates, and
    /// in an executable at a fixed address all constants.
    pub type_sections: Vec<(u64, u64)>,
    /// The facts about file buffers of C++; searched on first use.
    file_buffers: OnceLock<FileBufferFacts>,
    symbols: Vec<ElfSymbol>,
}

impl ElfImage {
    /// Returns the address of a symbol, in the image's own addresses.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
    }

    /// Adds a symbol. The first symbol of a name counts.
    fn has(&mut self, name: &'static str, address: u64, bytes: u64) {
        if self.symbol(name).is_none() {
            self.symbols.push(ElfSymbol { name, address, bytes });
        }
    }

    /// Returns the address of a symbol in a process that has the file's first page at `start`.
    pub fn symbol_at(&self, name: &str, start: u64) -> Option<u64> {
        self.symbol(name).map(|at| at.wrapping_add(self.bias(start)))
    }

    /// Returns the code of a function in a process that has the file's first page at `start`; empty without it.
    pub fn function_at(&self, name: &str, start: u64) -> Range<u64> {
        let known = self.symbols.iter().find(|symbol| symbol.name == name);
        known.map_or(0..0, |symbol| {
            let at = symbol.address.wrapping_add(self.bias(start));
            at..at.wrapping_add(symbol.bytes)
        })
    }

    /// Returns the memory layouts of the streams of a Rust program. `path` is the path of this file.
    pub fn layouts(&self, path: &Path) -> Option<Arc<RustLayouts>> {
        let read = || layouts::of(open_regular(path).ok()?).map(Arc::new);
        self.layouts.get_or_init(read).clone()
    }

    /// Returns the BufWriters of a Rust program that no walker reads, as the subject of a sentence; None if it has none.
    /// `path` is the path of this file.
    pub fn hidden_writers(&self, path: &Path) -> Option<&'static str> {
        let search = || rust::hidden_writers(path, || self.layouts(path));
        let is_rust = self.rust || self.rust_without_types;
        *self.hidden_writers.get_or_init(|| is_rust.then(search).flatten())
    }

    /// Returns whether a runtime whose buffers no walker reads is linked into the file. `path` is the path of this file.
    pub fn links_runtime(&self, path: &Path, runtime: RuntimeId) -> bool {
        self.linked_runtimes.get_or_init(|| linked_runtimes(path)).contains(&runtime)
    }

    /// Returns whether the file, which has a name of a runtime's program, confirms it. `path` is the path of this file.
    pub fn confirms_runtime(&self, path: &Path, runtime: RuntimeId) -> bool {
        let fits = |entry: &RuntimeEntry, sections: &ElfSections| entry.detection.is_confirmed_by(sections);
        self.marked_runtimes.get_or_init(|| runtimes_of_file(path, fits)).contains(&runtime)
    }

    /// Returns the facts about file buffers of C++. `path` is the path of this file.
    pub fn file_buffers(&self, path: &Path) -> &FileBufferFacts {
        let read = || ElfFile::open(path).and_then(|elf| Some(FileBufferFacts::of(&elf.sections().ok()?)));
        self.file_buffers.get_or_init(|| read().unwrap_or_default())
    }

    /// Returns the difference between addresses in a process and the image's own, for the file's first page at
    /// `start`.
    pub fn bias(&self, start: u64) -> u64 {
        if self.relative { start.wrapping_sub(self.first) } else { 0 }
    }
}

/// The start of a program's list of streams, for a backend that walks the list in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamListHead {
    /// Runtime that owns the list.
    pub walker: RuntimeId,
    /// Address of the pointer to the first stream.
    pub address: u64,
    /// `address` is relative to the load address of the file; otherwise it is absolute.
    pub relative: bool,
    /// Address of the first code, relative like `address`: the kernel records where the code of a process begins.
    pub code: u64,
}

/// Returns whether an executable's buffers can only be read while the process is stopped: the buffers of a runtime
/// other than glibc, or of a library that is linked into the executable.
pub fn needs_stops(exe: &Path) -> bool {
    let Some(image) = image(exe) else { return false };
    if image.foreign || image.go {
        return false;
    }
    !image.interpreted
        || image.rust
        || walkers().flat_map(|walker| walker.own_symbols).any(|name| image.symbol(name).is_some())
        || *image.names_runtime.get_or_init(|| names_runtime(exe))
}

/// Returns whether an executable is a Go program whose buffers can be read.
pub fn is_go(exe: &Path) -> bool {
    image(exe).is_some_and(|image| !image.foreign && image.go_parts.is_some())
}

/// Returns whether an executable's streams exist when its own code begins, as those of a C library do.
pub fn begins_with_streams(exe: &Path) -> bool {
    image(exe).is_some_and(|image| !image.foreign && !image.go)
}

/// Returns whether all known streams of an executable are those of a C library outside of it.
pub fn is_plain(exe: &Path) -> bool {
    begins_with_streams(exe) && !needs_stops(exe)
}

fn walkers() -> impl Iterator<Item = &'static WalkerEntry> {
    FILES.iter().filter_map(|runtime| runtime.walker_entry())
}

/// Returns whether an executable loads the library of a runtime with a walker, or writes wide characters, which the kernel programs do
/// not convert. The names of the interpreter, libraries and functions are near the beginning of a file.
fn names_runtime(exe: &Path) -> bool {
    const MAX_SEARCH: u64 = 1 << 16;
    let mut beginning = Vec::new();
    let read = open_regular(exe).map(|file| std::io::Read::take(file, MAX_SEARCH));
    let Ok(_bytes) = read.and_then(|mut file| std::io::Read::read_to_end(&mut file, &mut beginning)) else {
        return false;
    };
    let libraries = walkers().flat_map(|walker| walker.libraries).map(|name| name.as_bytes());
    let mut names = libraries.chain(WIDE_WRITERS);
    names.any(|name| memchr::memmem::find(&beginning, name).is_some())
}

fn linked_runtimes(path: &Path) -> Vec<RuntimeId> {
    runtimes_of_file(path, |runtime, sections| {
        let is_linked =
            |entry: &UnreadableEntry| (entry.is_linked_into)(sections) || entry.is_needed_by(sections);
        runtime.unreadable_entry().is_some_and(is_linked)
    })
}

/// Returns the runtimes that fit the sections of a file; none if it cannot be read.
fn runtimes_of_file(path: &Path, fits: impl Fn(&RuntimeEntry, &ElfSections) -> bool) -> Vec<RuntimeId> {
    let Some(elf) = ElfFile::open(path) else { return Vec::new() };
    let Ok(sections) = elf.sections() else { return Vec::new() };
    let fitting = FILES.iter().filter(|runtime| fits(runtime, &sections));
    fitting.map(|runtime| runtime.facts.id).collect()
}

/// Returns the start of the list of streams in a C library, or in a static executable that has its symbols.
pub fn list_head(elf: &Path) -> Option<StreamListHead> {
    let image = image(elf)?;
    let (walker, address) = match (image.symbol("_IO_list_all"), image.symbol("ofl_head")) {
        (Some(address), _) => (RuntimeId::GLIBC, address),
        (None, Some(address)) => (RuntimeId::MUSL, address),
        (None, None) => return None,
    };
    Some(StreamListHead { walker, address, relative: image.relative, code: image.code })
}

/// Device, inode, time of the last change (seconds, nanoseconds), size.
type FileKey = (u64, u64, i64, i64, u64);

/// Facts of a file. If two threads ask for a file at the same time, one reads it and the other one waits.
type CacheEntry = Arc<OnceLock<Option<Arc<ElfImage>>>>;

static CACHE: LazyLock<Mutex<HashMap<FileKey, CacheEntry>>> = LazyLock::new(Mutex::default);

/// Returns the facts of a file; None if it is no ELF file or cannot be read.
pub(crate) fn image(path: &Path) -> Option<Arc<ElfImage>> {
    image_if(path, |_| true)
}

/// As [`image`], but returns None if the file has another inode number.
pub(crate) fn image_of(path: &Path, inode: u64) -> Option<Arc<ElfImage>> {
    image_if(path, |found| found == inode)
}

fn image_if(path: &Path, fits: impl Fn(u64) -> bool) -> Option<Arc<ElfImage>> {
    let (file, status) = open_with_status(path).ok().filter(|(_, status)| fits(status.ino))?;
    let key = (status.dev, status.ino, status.changed.0, status.changed.1, status.size);
    known(key).get_or_init(|| read(file).map(Arc::new)).clone()
}

fn known(key: FileKey) -> CacheEntry {
    let mut cache = CACHE.lock().unwrap_or_else(|broken| broken.into_inner());
    if cache.len() >= MAX_CACHE && !cache.contains_key(&key) {
        cache.clear();
    }
    Arc::clone(cache.entry(key).or_default())
}

pub(crate) fn read(file: File) -> Option<ElfImage> {
    let elf = ElfFile::from_file(file)?;
    if elf.is_foreign() {
        return Some(ElfImage { foreign: true, ..ElfImage::default() });
    }
    read_own(&elf).ok()
}

fn read_own(elf: &ElfFile) -> object::Result<ElfImage> {
    let mut image = ElfImage { relative: elf.is_relative()?, ..ElfImage::default() };
    image.interpreted = elf.interpreter()?.is_some();
    let segments = elf.segments()?;
    let mut mapped = segments.iter().filter(|segment| segment.p_type(LittleEndian) == PT_LOAD);
    let first = mapped.clone().next();
    image.first = first.map_or(0, |segment| segment.p_vaddr(LittleEndian) & !0xfff);
    let code = mapped.find(|segment| segment.p_flags(LittleEndian).0 & PF_X.0 != 0);
    image.code = code.map_or(0, |segment| segment.p_vaddr(LittleEndian));
    let sections = elf.sections()?;
    let with_types = if image.relative { &[".data.rel.ro"][..] } else { &[".data.rel.ro", ".rodata"] };
    image.type_sections = with_types.iter().filter_map(|name| sections.address_and_size(name)).collect();
    image.go_parts = go_parts(&sections);
    image.go = image.go_parts.is_some() || sections.has(".gopclntab");
    let (rust, has_types) = (is_rust(&sections), sections.has(".debug_info"));
    (image.rust, image.rust_without_types) = (rust && has_types, rust && !has_types);
    let (exported, all) =
        if image.interpreted { (MAX_DYNAMIC, MAX_SYMTAB) } else { (MAX_STATIC, MAX_STATIC) };
    // An executable with a copy relocation of `stdout` defines the symbol too.
    let names = if image.go { &[GOROUTINES][..] } else { &KEPT };
    let looked_up = sections.find_exported(SEARCHED, names, |name, at, bytes| image.has(name, at, bytes));
    let exported = if looked_up.is_some() { 0 } else { exported };
    sections.symbols(exported, all, |name, at, bytes| {
        let known = if image.go { goroutines(name) } else { wanted(name) };
        if let Some(wanted) = known {
            image.has(wanted, at, bytes);
        }
    })?;
    Ok(image)
}

/// Returns the wanted symbol of this name, which ends at a NUL; None if it is not wanted.
fn wanted(name: &[u8]) -> Option<&'static str> {
    let is = |wanted: &&&str| {
        name.starts_with(wanted.as_bytes()) && name.get(wanted.len()).is_some_and(|&end| end == 0)
    };
    KEPT.iter().find(is).copied().or_else(|| is_rust_stdout(name).then_some(RUST_STDOUT))
}

/// Returns whether Rust's compiler made the file: `.comment` names it, or the file names Rust's pretty printers.
fn is_rust(sections: &ElfSections) -> bool {
    const MAX_COMMENT: u64 = 4096;
    let text = sections.bytes(".comment", MAX_COMMENT);
    text.unwrap_or(&[]).windows(6).any(|part| part == b"rustc ") || has_rust_printers(sections)
}

/// Returns whether the file asks a debugger to load Rust's pretty printers. Compilers before Rust 1.73 leave no other name with `-g`.
pub(crate) fn has_rust_printers(sections: &ElfSections) -> bool {
    section_contains(sections, ".debug_gdb_scripts", b"gdb_load_rust_pretty_printers")
}

/// Returns [`GOROUTINES`] if this is the name, which ends at a NUL.
fn goroutines(name: &[u8]) -> Option<&'static str> {
    (name.starts_with(GOROUTINES.as_bytes()) && name.get(GOROUTINES.len()) == Some(&0)).then_some(GOROUTINES)
}

/// Returns the sections that lead to a Go program's streams. In a PIE their names have a prefix.
fn go_parts(sections: &ElfSections) -> Option<GoSections> {
    let named = |name: &str| {
        sections.address_and_size(name).or_else(|| sections.address_and_size(&format!(".data.rel.ro{name}")))
    };
    let data = [".go.module", ".noptrdata", ".data", ".data.rel.ro"].into_iter().filter_map(named).collect();
    // The settings of the build, as text.
    let is_profiled = section_contains(sections, ".go.buildinfo", b"\tbuild\t-pgo=")
        || section_contains(sections, ".go.buildinfo", b"\nbuild\t-pgo=");
    let links = named(".itablink").map(|(at, bytes)| ItabSection::Links(at, bytes));
    let types = || named(".go.type").map(|(at, bytes)| ItabSection::Types(at, bytes));
    Some(GoSections { functions: named(".gopclntab")?.0, itabs: links.or_else(types)?, data, is_profiled })
}

/// Returns whether a symbol is Rust's `STDOUT`, in both mangling schemes: _RNvNtNtCs…_3std2io5stdio6STDOUT and
/// _ZN3std2io5stdio6STDOUT17h…E. In old versions the variable is inside the function stdout(), and is named INSTANCE.
pub(crate) fn is_rust_stdout(name: &[u8]) -> bool {
    let old: [&[u8]; 2] = [b"_ZN3std2io5stdio6STDOUT17h", b"_ZN3std2io5stdio6stdout8INSTANCE17h"];
    let (start, end) = (b"_RNvNtNtCs", b"_3std2io5stdio6STDOUT\0");
    old.iter().any(|old| name.starts_with(old))
        || name.starts_with(start) && name[..name.len().min(64)].windows(end.len()).any(|part| part == end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns those of the files that exist.
    fn found(names: &[&'static str]) -> Vec<&'static Path> {
        names.iter().map(|name| Path::new(*name)).filter(|path| path.exists()).collect()
    }

    #[test]
    fn executables_with_other_streams_are_not_plain() {
        let plain = found(&["/bin/true", "/bin/cat", "/usr/bin/make", "/usr/bin/as"]);
        assert!(!plain.is_empty() && plain.iter().all(|path| is_plain(path)), "{plain:?}");
        let others = found(&["/usr/bin/perl", "/usr/bin/python3", "/usr/bin/ruby", "/usr/bin/tclsh"]);
        assert!(others.iter().all(|path| !is_plain(path)), "{others:?}");
        let own = std::env::current_exe().expect("this program");
        assert!(!is_plain(&own), "Rust's");
        assert!(!is_plain(Path::new("/etc/passwd")) && !is_plain(Path::new("/nothing")));
    }
}
