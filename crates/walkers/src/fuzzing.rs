//! Entry points of fuzz/: each runs the code of one runtime on crafted memory, as a hostile process can have it. The first
//! words of the memory are those to which symbols and searches lead.

use std::cell::Cell;
use std::fs::File;

use weir_sys::maps::{MappedRegion, MappingKind};
use weir_sys::memory::Memory;

use crate::copied_memory::{MAX_BUFFER, MAX_STREAMS, PENDING_KEPT, UNREAD_KEPT};
use crate::image_memory::ImageMemory;
use crate::runtimes::{cpp, cpython, go, libweir, mawk, musl, ocaml, perl, ruby, rust, tcl};
use crate::stream_buffer::StreamBuffer;
use crate::{MAX_PENDING, Walker, pending, previews};

/// The address at which the crafted memory begins.
pub const BASE: u64 = 0x10000;
/// The size of the header of an input, which defines the layout of the memory and its change. The memory follows it.
pub const HEADER_BYTES: usize = 16;
/// A process ID that no process has.
pub(crate) const NO_PROCESS: u32 = u32::MAX;
/// The largest memory, in bytes.
const MAX_MEMORY: usize = 256 << 10;

/// Memory of a process that does not exist. It is the input, or the input repeated: each copy's pointers lead into itself or
/// into the next copy, so that a short input makes a long list.
pub struct CraftedMemory {
    bytes: Vec<u8>,
    /// A number of reads, the offset of a word in bytes, and the value of that word after more reads than this number.
    change: (u32, usize, [u8; 8]),
    reads: Cell<u32>,
}

impl CraftedMemory {
    /// Makes the memory that an input describes; None if it is too short for one word.
    pub fn of(input: &[u8]) -> Option<CraftedMemory> {
        let (header, words) = input.split_at_checked(HEADER_BYTES)?;
        let words = words.as_chunks::<8>().0;
        if words.is_empty() {
            return None;
        }
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        // Most inputs are one copy: they are faster.
        let copies = if header[0] < 252 { 1 } else { (MAX_MEMORY / (8 * words.len())).max(1) };
        let ahead = usize::from(header[1] & 1);
        let copy = |copy: usize| {
            words.iter().flat_map(move |word| moved(*word, (copy + ahead) * 8 * words.len(), words))
        };
        let bytes = match copies {
            1 => words.as_flattened().to_vec(),
            _ => (0..copies).flat_map(copy).collect(),
        };
        let change = (u32::from(half(2)), 8 * usize::from(half(4)), *header[8..].first_chunk()?);
        Some(CraftedMemory { bytes, change, reads: Cell::new(0) })
    }

    /// Returns the address behind the last byte.
    pub fn end(&self) -> u64 {
        BASE + self.bytes.len() as u64
    }

    /// Returns a word by its index; 0 behind the end.
    fn first(&self, index: usize) -> u64 {
        self.bytes.as_chunks::<8>().0.get(index).map_or(0, |word| u64::from_le_bytes(*word))
    }
}

/// Moves a word that points into the first copy of these words.
fn moved(word: [u8; 8], bytes: usize, words: &[[u8; 8]]) -> [u8; 8] {
    let value = u64::from_le_bytes(word);
    match (BASE..BASE + 8 * words.len() as u64).contains(&value) {
        true => (value + bytes as u64).to_le_bytes(),
        false => word,
    }
}

impl Memory for CraftedMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.reads.set(self.reads.get().saturating_add(1));
        let at = address.checked_sub(BASE).and_then(|at| usize::try_from(at).ok());
        let Some((at, from)) = at.and_then(|at| Some((at, self.bytes.get(at..)?))) else { return 0 };
        let bytes = into.len().min(from.len());
        into[..bytes].copy_from_slice(&from[..bytes]);
        let (after, changed, word) = self.change;
        if self.reads.get() > after
            && let Some(place) = changed.checked_sub(at).and_then(|at| into[..bytes].get_mut(at..at + 8))
        {
            place.copy_from_slice(&word);
        }
        bytes
    }

    fn mappings(&self, _pid: u32) -> Vec<MappedRegion> {
        let kinds = [MappingKind::Heap, MappingKind::Anonymous];
        let middle = BASE + (self.end() - BASE) / 2 / 4096 * 4096;
        let parts = [(BASE, middle), (middle, self.end())];
        let region = |((start, end), kind)| MappedRegion {
            start,
            end,
            writable: true,
            executable: false,
            private: true,
            offset: 0,
            device: (0, 0),
            inode: 0,
            kind,
        };
        parts.into_iter().zip(kinds).filter(|((start, end), _)| start < end).map(region).collect()
    }
}

/// Checks what every verb reads of a process: previews with a limit for each stream, and all pending bytes.
fn check(walker: impl Walker + 'static, memory: &dyn Memory) {
    let walkers: [Box<dyn Walker>; 1] = [Box::new(walker)];
    let all = walkers[0].read(memory, PENDING_KEPT);
    sound(&all, PENDING_KEPT);
    let most = 1 << 20;
    let shown: u64 =
        previews(&walkers, memory, 4096, most).iter().map(|one| one.buffer.pending.len() as u64).sum();
    assert!(shown <= most);
    let bytes: u64 =
        pending(&walkers, memory, MAX_PENDING).streams.iter().map(|one| one.bytes.len() as u64).sum();
    assert!(bytes <= MAX_PENDING);
    for one in all.iter().take(4) {
        let _address = walkers[0].watch_address(memory, &one.buffer);
    }
    let _layers = walkers[0].text_layers(memory);
    walkers[0].search_again();
    sound(&walkers[0].read(memory, 0), 0);
}

fn sound(found: &[StreamBuffer], kept: u64) {
    assert!(found.len() <= 4 * MAX_STREAMS);
    for one in found.iter().map(|one| &one.buffer) {
        assert!(one.pending.len() as u64 <= kept.min(one.pending_bytes), "{one:?}");
        assert!(one.unread.len() as u64 <= UNREAD_KEPT.min(one.unread_bytes), "{one:?}");
        assert!(one.pending_bytes.max(one.unread_bytes) <= 16 * MAX_BUFFER && one.fd >= -1, "{one:?}");
    }
}

/// Returns an image whose code is the last eighth of the memory.
fn image(memory: &CraftedMemory) -> ImageMemory {
    let code = memory.end() - (memory.end() - BASE) / 8;
    ImageMemory::crafted((BASE, code), (code, memory.end()))
}

/// glibc: the list at the first word, and the search of a static program.
pub fn glibc(memory: &CraftedMemory) {
    check(crate::GlibcStreams::at(BASE), memory);
    if let Some(walker) = crate::runtimes::glibc::list_search::search(memory, &image(memory)) {
        check(walker, memory);
    }
}

/// musl: the list at the first word with two standard streams, and the search of a static program.
pub fn musl(memory: &CraftedMemory) {
    let standard = vec![BASE + 8, BASE + 168];
    check(musl::MuslStreams { standard, others: musl::OpenFileList::Head(BASE) }, memory);
    if let Some(walker) = musl::list_search::search(memory, image(memory)) {
        check(walker, memory);
    }
}

/// libweir: streams at the beginning of each page.
pub fn libweir(memory: &CraftedMemory) {
    check(libweir::LibweirStreams { pid: NO_PROCESS }, memory);
}

/// CPython: `_PyRuntime` at the first word, each version.
pub fn cpython(memory: &CraftedMemory) {
    for minor in 9..=15 {
        if let Some(layout) = cpython::PythonLayout::of(memory, minor, BASE) {
            check(cpython::PythonStreams::new(NO_PROCESS, BASE, layout, 0..0), memory);
            cpython::fuzzing::objects(memory, &layout, memory.first(0));
        }
    }
}

/// OCaml: the list of channels at the first word.
pub fn ocaml(memory: &CraftedMemory) {
    check(ocaml::fuzzing::channels(), memory);
}

/// Perl: the tables of the layers are at the words 400 and 440.
pub fn perl(memory: &CraftedMemory) {
    let layers = perl::PerlLayers { perlio: BASE + 8 * 400, unix: BASE + 8 * 440 };
    let _known = layers.are_known(memory);
    check(perl::PerlHandles::new(NO_PROCESS, layers), memory);
}

/// Ruby: the standard streams and the class IO are at the words 108 to 111, each layout.
pub fn ruby(memory: &CraftedMemory) {
    ruby::fuzzing::streams().into_iter().for_each(|walker| check(walker, memory));
}

/// Tcl: the heap is searched for the lists of channels, in each layout.
pub fn tcl(memory: &CraftedMemory) {
    tcl::fuzzing::channels().into_iter().for_each(|walker| check(walker, memory));
}

/// Go: itabs in the memory, and two that are known.
pub fn go(memory: &CraftedMemory) {
    go::fuzzing::walk(memory, 0x5000);
}

/// Rust: standard output at the first word, and objects of three layouts.
pub fn rust(memory: &CraftedMemory) {
    check(rust::RustStdout { stdout: BASE }, memory);
    rust::fuzzing::walk(memory);
}

/// C++: the name of the type at the word 60, the list of FILEs at the second one.
pub fn cpp(memory: &CraftedMemory) {
    if let Some(walker) = cpp::fuzzing::streams(memory, BASE + 8 * 60) {
        check(walker, memory);
    }
}

/// C++ with libc++: the same.
pub fn libcxx(memory: &CraftedMemory) {
    if let Some(walker) = cpp::fuzzing::libcxx_streams(memory, BASE + 8 * 60) {
        check(walker, memory);
    }
}

/// mawk: a read(2) that the first words describe.
pub fn mawk(memory: &CraftedMemory) {
    mawk::fuzzing::find(memory, [memory.first(0), memory.first(1), memory.first(2)]);
}

/// Reads the facts of an executable or library: its symbols, and the marks of its runtime.
pub fn elf_image(file: File) {
    let Some(image) = crate::elf_image::read(file) else { return };
    let _address = image.symbol_at("_IO_list_all", BASE);
    let _code = image.function_at("execve", BASE);
}

/// Reads the memory layouts of a Rust program from its debug information.
pub fn rust_types(file: File) {
    if let Some(layouts) = rust::layouts::of(file) {
        assert!(layouts.all.iter().all(|layout| layout.inner_at < 64 && layout.length < 64));
    }
}
