//! C++ with libstdc++: the file buffers of std::ofstream and std::fstream, and of std::cout after
//! sync_with_stdio(false). Before that, std::cout writes through the C library's stdout.
//!
//! No list leads to the file buffers. They are found by their virtual table pointers, and accepted if all fields and the
//! FILE of the C library behind them agree. See [`filebuf`] for what makes it safe to read and drain them.

mod executable;
mod filebuf;
pub(crate) mod fuzzing;
mod libcxx;
mod libcxx_filebuf;
#[cfg(test)]
mod libcxx_tests;
mod search;
#[cfg(test)]
mod tests;
mod types;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::maps::{MappedRegion, MappingKind, writable_ranges};
use weir_sys::memory::Memory;

use crate::copied_memory::{int, read_stable, structure, word};
use crate::runtimes::glibc::{self, GlibcStreams};
use crate::runtimes::musl;
use crate::stream_buffer::{self, StreamBuffer};
use crate::{Detected, ProcessImages, Walker, c_library};

pub(crate) use executable::{FileBufferFacts, RUNTIME};
use filebuf::OBJECT_BYTES;
use search::{FileBuffer, FileBufferSearch, FilesByAddress};
use types::{FileBufferTypes, is_plain_facet};

/// The buffers of a program whose file buffers cannot be found.
const UNREADABLE: &str = "C++ file buffers (std::ofstream)";

/// Bounds the writable memory of the library or static executable that is read in each snapshot.
const MAX_OWN: u64 = 1 << 20;

/// The buffers that no walker reads.
const WIDE: &str = "C++ file buffers of wide characters (std::wofstream)";

fn detect(process: &ProcessImages, found: &mut Detected) {
    let executable = process.executable_start();
    let file = executable.and_then(|region| process.image_file(region));
    if let (Some(region), Some((path, image))) = (executable, file)
        && image.file_buffers(&path).uses_wide
    {
        found.add_unreadable_buffers(region.start, WIDE);
    }
    libcxx::detect(process, found);
    detect_libstdcxx(process, found);
}

fn detect_libstdcxx(process: &ProcessImages, found: &mut Detected) {
    let library = process.starts().find(|region| region.name().starts_with("libstdc++.so"));
    let Some(region) = library.or_else(|| process.executable_start()) else { return };
    let Some((path, image)) = process.image_file(region) else {
        // The library was replaced since the program began.
        if library.is_some() && process.is_mapped(region) {
            found.add_unreadable_buffers(region.start, UNREADABLE);
        }
        return;
    };
    let names = &image.file_buffers(&path).names;
    if names.is_empty() {
        return;
    }
    let bias = image.bias(region.start);
    let names: Vec<u64> = names.iter().map(|name| name.wrapping_add(bias)).collect();
    // The executable may have copies of the library's types, and types of its own.
    let images: Vec<&MappedRegion> =
        [Some(region), process.executable_start()].into_iter().flatten().collect();
    let sections = relocated_sections(process, &images);
    let types = FileBufferTypes::find(&process.memory, &names, &sections);
    if types.tables.is_empty() {
        // Before the loader has relocated the library, its types have no names and tables yet.
        if is_relocated(&process.regions, &sections) && process.is_mapped(region) {
            found.add_unreadable_buffers(region.start, UNREADABLE);
        }
        return;
    }
    let MappingKind::File(mapped) = &region.kind else { return };
    let own_memory = writable_ranges(&process.regions, mapped);
    let own_bytes: u64 = own_memory.iter().map(|(start, end)| end - start).sum();
    found.add(
        region.start,
        Box::new(CppStreams {
            pid: process.pid,
            types,
            own_memory: if own_bytes <= MAX_OWN { own_memory } else { Vec::new() },
            files: c_library::glibc_streams(process),
            search: RefCell::default(),
            facets: RefCell::default(),
        }),
    );
}

/// Returns addresses and sizes of the sections of some images that can have type information.
fn relocated_sections(process: &ProcessImages, images: &[&MappedRegion]) -> Vec<(u64, u64)> {
    let sections_of = |region: &&MappedRegion| {
        let image = process.image(region);
        let sections = image.iter().flat_map(|image| {
            let bias = image.bias(region.start);
            image.type_sections.iter().map(move |(start, bytes)| (start.wrapping_add(bias), *bytes))
        });
        sections.collect::<Vec<_>>()
    };
    let sections: BTreeSet<(u64, u64)> = images.iter().flat_map(sections_of).collect();
    sections.into_iter().collect()
}

/// Returns whether the loader has finished with the sections: it then makes them read-only.
fn is_relocated(regions: &[MappedRegion], sections: &[(u64, u64)]) -> bool {
    let is_in = |region: &MappedRegion, start: u64| (region.start..region.end).contains(&start);
    let of = |(start, _): &(u64, u64)| regions.iter().find(|region| is_in(region, *start));
    sections.iter().all(|section| of(section).is_some_and(|region| !region.writable))
}

/// The walker of libstdc++'s file buffers.
#[derive(Debug, Clone)]
pub(crate) struct CppStreams {
    pid: u32,
    types: FileBufferTypes,
    /// The writable memory of the library, which has the file buffers of the standard streams.
    own_memory: Vec<(u64, u64)>,
    /// The list of FILEs; None with another C library than glibc.
    files: Option<GlibcStreams>,
    search: RefCell<FileBufferSearch>,
    /// Whether a facet changes bytes, by the address of its virtual table.
    facets: RefCell<HashMap<u64, bool>>,
}

impl CppStreams {
    /// Returns the open file buffer at an address; None if there is none.
    fn file_buffer(
        &self,
        memory: &dyn Memory,
        at: u64,
        files: Option<&FilesByAddress>,
        kept: u64,
    ) -> Option<FileBuffer> {
        let copy = structure::<OBJECT_BYTES>(memory, at)?;
        let read = |object: &[u8; OBJECT_BYTES]| {
            let is_one = self.types.contains(word(object, 0)) && filebuf::is_open(object);
            let fd = if is_one { descriptor(memory, filebuf::c_file(object), files)? } else { return None };
            let converts = || self.converts(memory, filebuf::codecvt(object));
            let stream = filebuf::stream(memory, at, object, fd, converts, kept);
            stream.map(|stream| self.types.as_far_as_known(word(object, 0), stream))
        };
        let stream = read_stable(memory, at, copy, read)?;
        Some(FileBuffer { at, file: filebuf::c_file(&copy), stream })
    }

    /// Returns whether a facet can change the bytes that a file buffer writes. True if its type is unknown.
    fn converts(&self, memory: &dyn Memory, facet: u64) -> bool {
        let Some(table) = memory.u64(facet) else { return true };
        *self.facets.borrow_mut().entry(table).or_insert_with(|| !is_plain_facet(memory, table))
    }

    /// Returns the addresses of the objects in the library's own memory.
    fn own_objects(&self, memory: &dyn Memory) -> Vec<u64> {
        let objects = |(start, end): &(u64, u64)| {
            let bytes = memory.bytes(*start, (end - start) as usize);
            let is_object = |index: &usize| self.types.contains(word(&bytes, 8 * index));
            let found: Vec<u64> =
                (0..bytes.len() / 8).filter(is_object).map(|index| start + 8 * index as u64).collect();
            found
        };
        self.own_memory.iter().flat_map(objects).collect()
    }
}

impl Walker for CppStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::CPP
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let files = self.files.as_ref().map(|files| files.files(memory));
        let files = files.as_deref();
        let by_address = files.map(|files| files.iter().copied().collect());
        let read = |at: u64, kept: u64| self.file_buffer(memory, at, by_address.as_ref(), kept);
        let mut search = self.search.borrow_mut();
        search.objects.extend(self.own_objects(memory));
        search.read_all((self.pid, memory), files, &self.types, read, kept)
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(CppStreams { pid: child, ..self.clone() }))
    }

    fn found_objects(&self) -> Vec<u64> {
        self.search.borrow().objects.iter().copied().collect()
    }

    fn continue_search(&self, objects: Vec<u64>) {
        self.search.borrow_mut().continue_with(objects);
    }

    fn search_again(&self) {
        self.search.borrow_mut().search_whole();
    }
}

/// Returns the descriptor of a FILE that a file buffer uses; None if it is no open FILE.
fn descriptor(memory: &dyn Memory, file: u64, files: Option<&FilesByAddress>) -> Option<i32> {
    let fd = match files {
        Some(files) => files.get(&file).map(|bytes| int(bytes, glibc::FILENO)),
        None => memory.i32(file.checked_add(musl::FD as u64)?),
    };
    fd.filter(|fd| *fd >= 0)
}
