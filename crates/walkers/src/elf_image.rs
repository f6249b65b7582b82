//! The few facts of an ELF file that the walkers need, read once a file.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use object::LittleEndian;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::ProgramHeader;
use weir_model::trace::RuntimeId;
use weir_sys::elf::{ElfFile, ElfSections};

use crate::WalkerEntry;
use crate::runtimes::FILES;
use crate::runtimes::go::GoSections;
use crate::runtimes::rust::layouts::{self, RustLayouts};

/// The functions at which a process is stopped.
const FUNCTIONS: [&str; 2] = ["execve", "write"];

/// The symbols that are kept: those that the walkers ask for, and [`FUNCTIONS`].
static KEPT: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let of_walkers = walkers().flat_map(|walker| walker.symbols);
    of_walkers.chain(&FUNCTIONS).copied().collect()
});

/// What stands for `std::io::stdio::STDOUT` of Rust, whose written name is of many forms.
pub(crate) const RUST_STDOUT: &str = "std::io::stdio::STDOUT";

/// The list of a Go program's goroutines.
pub(crate) const GOROUTINES: &str = "runtime.allgs";

/// What a dynamic image exports is looked up by its names where its symbols take more than this, not read through: a compiler
/// that takes plugins exports 2 MB of them with their names.
const SEARCHED: u64 = 32 << 10;

/// A symbol table larger than this is not read, to be quick: what a dynamic image exports, all that it has (which
/// adds little to what it exports), and all that a static program or a library has.
const DYNAMIC_MOST: u64 = 1 << 20;
const SYMTAB_MOST: u64 = 1 << 20;
const STATIC_MOST: u64 = 8 << 20;

/// Past these many files the cache begins anew: a build makes new programs for ever.
const CACHE_MOST: usize = 1024;

/// Address and size of a symbol, in the image's own addresses.
#[derive(Debug, Clone, Copy)]
struct ElfSymbol {
    name: &'static str,
    address: u64,
    bytes: u64,
}

/// What is known of an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElfImage {
    /// Its addresses are relative to where it is loaded (PIE, shared object).
    pub relative: bool,
    /// It has a program interpreter: the C library is another image.
    pub interpreted: bool,
    /// The page of its first segment, in its own addresses.
    pub first: u64,
    /// Where the first segment that may be executed begins, in its own addresses.
    pub code: u64,
    /// It is of 32 bits or of another byte order: no walker knows it.
    pub foreign: bool,
    /// It was made by Go's compiler: its symbols are many and lead to no stream.
    pub go: bool,
    /// It was made by Rust's compiler, and has debug information.
    pub rust: bool,
    /// Where the parts are that lead to a Go program's streams.
    pub go_parts: Option<GoSections>,
    /// How the streams of a Rust program lie in memory, read when it is first asked for.
    layouts: OnceLock<Option<Arc<RustLayouts>>>,
    /// It names a runtime that it loads, sought when it is first asked for.
    names_runtime: OnceLock<bool>,
    symbols: Vec<ElfSymbol>,
}

impl ElfImage {
    /// Where the symbol is, in the image's own addresses.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
    }

    /// It has this symbol; of several of the name the first counts.
    fn has(&mut self, name: &'static str, address: u64, bytes: u64) {
        if self.symbol(name).is_none() {
            self.symbols.push(ElfSymbol { name, address, bytes });
        }
    }

    /// Where the symbol is in a process that has the file's first page at `start`.
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

    /// How the streams of a Rust program, in this file, lie in memory.
    pub fn layouts(&self, path: &Path) -> Option<Arc<RustLayouts>> {
        let read = || layouts::of(File::open(path).ok()?).map(Arc::new);
        self.layouts.get_or_init(read).clone()
    }

    /// What is added to the image's own addresses in a process that has the file's first page at `start`.
    pub fn bias(&self, start: u64) -> u64 {
        if self.relative { start.wrapping_sub(self.first) } else { 0 }
    }
}

/// Where a program's list of streams begins, for an engine that walks it in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamListHead {
    /// Whose list.
    pub walker: RuntimeId,
    /// Of the pointer to the first stream.
    pub address: u64,
    /// `address` is relative to where the file's address 0 is loaded, otherwise absolute.
    pub relative: bool,
    /// Of the first code, in the same addresses: the kernel remembers where it is in a process.
    pub code: u64,
}

/// Whether an executable's buffers are such that only a look from outside, while it stands still, can see them:
/// a runtime's own, another C library's than glibc, or a library's inside the program.
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

/// Whether an executable is Go's, whose buffers can be found.
pub fn is_go(exe: &Path) -> bool {
    image(exe).is_some_and(|image| !image.foreign && image.go_parts.is_some())
}

/// Whether an executable's streams are there when its own code begins: those of a C library are.
pub fn begins_with_streams(exe: &Path) -> bool {
    image(exe).is_some_and(|image| !image.foreign && !image.go)
}

/// Whether all of an executable's streams, as far as anybody knows, are those of a C library outside it.
pub fn is_plain(exe: &Path) -> bool {
    begins_with_streams(exe) && !needs_stops(exe)
}

fn walkers() -> impl Iterator<Item = &'static WalkerEntry> {
    FILES.iter().filter_map(|runtime| runtime.walker_entry())
}

/// Tells whether an executable loads the library of a runtime with a walker. The names of the interpreter and the
/// libraries are near the beginning of a file.
fn names_runtime(exe: &Path) -> bool {
    const SEARCH_MOST: u64 = 1 << 16;
    let mut beginning = Vec::new();
    let read = File::open(exe).map(|file| std::io::Read::take(file, SEARCH_MOST));
    let Ok(_bytes) = read.and_then(|mut file| std::io::Read::read_to_end(&mut file, &mut beginning)) else {
        return false;
    };
    let mut names = walkers().flat_map(|walker| walker.libraries);
    names.any(|name| memchr::memmem::find(&beginning, name.as_bytes()).is_some())
}

/// The head of the list in a C library's file, or in a static program's that has its symbols.
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

/// Of a file that two threads ask for at once one reads and the other waits.
type CacheEntry = Arc<OnceLock<Option<Arc<ElfImage>>>>;

static CACHE: LazyLock<Mutex<HashMap<FileKey, CacheEntry>>> = LazyLock::new(Mutex::default);

/// The facts of the file; None where it is no ELF file or cannot be read.
pub(crate) fn image(path: &Path) -> Option<Arc<ElfImage>> {
    image_if(path, |_| true)
}

/// The same, if the file has this inode number.
pub(crate) fn image_of(path: &Path, inode: u64) -> Option<Arc<ElfImage>> {
    image_if(path, |found| found == inode)
}

fn image_if(path: &Path, fits: impl Fn(u64) -> bool) -> Option<Arc<ElfImage>> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file() && fits(about.ino()))?;
    let key = (about.dev(), about.ino(), about.mtime(), about.mtime_nsec(), about.size());
    known(key).get_or_init(|| read(file).map(Arc::new)).clone()
}

fn known(key: FileKey) -> CacheEntry {
    let mut cache = CACHE.lock().unwrap_or_else(|broken| broken.into_inner());
    if cache.len() >= CACHE_MOST && !cache.contains_key(&key) {
        cache.clear();
    }
    Arc::clone(cache.entry(key).or_default())
}

fn read(file: File) -> Option<ElfImage> {
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
    let first = segments.iter().find(|segment| segment.p_type(LittleEndian) == PT_LOAD);
    image.first = first.map_or(0, |segment| segment.p_vaddr(LittleEndian) & !0xfff);
    let code = segments.iter().find(|segment| segment.p_flags(LittleEndian).0 & PF_X.0 != 0);
    image.code = code.map_or(0, |segment| segment.p_vaddr(LittleEndian));
    let sections = elf.sections()?;
    image.go_parts = go_parts(&sections);
    image.go = image.go_parts.is_some() || sections.has(".gopclntab");
    image.rust = is_rust(&sections);
    let (exported, all) =
        if image.interpreted { (DYNAMIC_MOST, SYMTAB_MOST) } else { (STATIC_MOST, STATIC_MOST) };
    // An executable that copies `stdout` into itself defines it too.
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

/// Which of the wanted symbols it is; the name ends at a NUL.
fn wanted(name: &[u8]) -> Option<&'static str> {
    let is = |wanted: &&&str| {
        name.starts_with(wanted.as_bytes()) && name.get(wanted.len()).is_some_and(|&end| end == 0)
    };
    KEPT.iter().find(is).copied().or_else(|| is_rust_stdout(name).then_some(RUST_STDOUT))
}

/// Compilers leave their names.
fn is_rust(sections: &ElfSections) -> bool {
    const COMMENT_MOST: u64 = 4096;
    let has_types = sections.has(".debug_info");
    let text = if has_types { sections.bytes(".comment", COMMENT_MOST) } else { None };
    text.unwrap_or(&[]).windows(6).any(|part| part == b"rustc ")
}

/// The only one of a Go program that is of use.
fn goroutines(name: &[u8]) -> Option<&'static str> {
    (name.starts_with(GOROUTINES.as_bytes()) && name.get(GOROUTINES.len()) == Some(&0)).then_some(GOROUTINES)
}

/// In a relocatable program the names of the sections are longer.
fn go_parts(sections: &ElfSections) -> Option<GoSections> {
    let named = |name: &str| {
        sections.address_and_size(name).or_else(|| sections.address_and_size(&format!(".data.rel.ro{name}")))
    };
    let data = [".go.module", ".noptrdata", ".data", ".data.rel.ro"].into_iter().filter_map(named).collect();
    Some(GoSections { functions: named(".gopclntab")?.0, links: named(".itablink")?, data })
}

/// In both of Rust's ways to write a path: _RNvNtNtCs…_3std2io5stdio6STDOUT, _ZN3std2io5stdio6STDOUT17h…E.
fn is_rust_stdout(name: &[u8]) -> bool {
    let old = b"_ZN3std2io5stdio6STDOUT17h";
    let (start, end) = (b"_RNvNtNtCs", b"_3std2io5stdio6STDOUT\0");
    name.starts_with(old)
        || name.starts_with(start) && name[..name.len().min(64)].windows(end.len()).any(|part| part == end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is there of these.
    fn found(names: &[&'static str]) -> Vec<&'static Path> {
        names.iter().map(|name| Path::new(*name)).filter(|path| path.exists()).collect()
    }

    #[test]
    fn who_has_streams_of_another_kind_is_not_plain() {
        let plain = found(&["/bin/true", "/bin/cat", "/usr/bin/make", "/usr/bin/as"]);
        assert!(!plain.is_empty() && plain.iter().all(|path| is_plain(path)), "{plain:?}");
        let others = found(&["/usr/bin/perl", "/usr/bin/python3", "/usr/bin/ruby", "/usr/bin/tclsh"]);
        assert!(others.iter().all(|path| !is_plain(path)), "{others:?}");
        let own = std::env::current_exe().expect("this program");
        assert!(!is_plain(&own), "Rust's");
        assert!(!is_plain(Path::new("/etc/passwd")) && !is_plain(Path::new("/nothing")));
    }
}
