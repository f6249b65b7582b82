//! The file buffers of libc++: of std::ofstream and std::fstream. Its std::cout writes through the C library's stdout always.
//!
//! They are found as those of libstdc++, by their virtual tables and their FILEs. Each executable or library that uses a file buffer
//! contains the type, and all of them use the type of the first one.

use std::cell::RefCell;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::maps::MappedRegion;
use weir_sys::memory::Memory;

use super::libcxx_filebuf::{self, InnerFile, OBJECT_BYTES};
use super::search::{FileBuffer, FileBufferSearch, FilesByAddress};
use super::types::FileBufferTypes;
use super::{UNREADABLE, is_relocated, relocated_sections};
use crate::copied_memory::{int, read_stable, structure, word};
use crate::process_images::is_program_code;
use crate::runtimes::glibc::{self, GlibcStreams};
use crate::stream_buffer::{self, StreamBuffer};
use crate::{Detected, ProcessImages, Walker, c_library};

/// The walkers of this order come after all others, so that a FILE comes before the file buffer that hands it its bytes.
const LAST: u64 = u64::MAX;

/// Adds the walker if the program or one of its libraries writes through a file buffer of libc++.
pub(super) fn detect(process: &ProcessImages, found: &mut Detected) {
    let is_library = |region: &&MappedRegion| region.name().starts_with("libc++.so");
    let library = process.starts().find(is_library);
    let (mut names, mut regions, mut is_used) = (Vec::new(), Vec::new(), false);
    for region in process.starts().filter(|region| process.is_executable(region) || library.is_some()) {
        let is_own_library = library.is_some_and(|library| library.start == region.start);
        if !is_program_code(region) && !is_own_library {
            continue;
        }
        let Some((path, image)) = process.image_file(region) else { continue };
        let facts = image.file_buffers(&path);
        is_used |= facts.uses_libcxx && !is_own_library;
        let bias = image.bias(region.start);
        names.extend(facts.names_of_libcxx.iter().map(|name| name.wrapping_add(bias)));
        if !facts.names_of_libcxx.is_empty() {
            regions.push(region);
        }
    }
    if !is_used {
        return;
    }
    let sections = relocated_sections(process, &regions);
    let types = FileBufferTypes::find(&process.memory, &names, &sections);
    match c_library::glibc_streams(process).filter(|_| !types.tables.is_empty()) {
        Some(files) => {
            let search = RefCell::new(FileBufferSearch::of_used_files());
            found.add(LAST, Box::new(LibcxxStreams { pid: process.pid, types, files, search }));
        }
        // Before the loader has relocated the executable, its types have no names and tables yet.
        None if is_relocated(&process.regions, &sections)
            && process.executable_start().is_some_and(|region| process.is_mapped(region)) =>
        {
            found.add_unreadable_buffers(LAST, UNREADABLE)
        }
        None => {}
    }
}

/// The walker of libc++'s file buffers.
#[derive(Debug, Clone)]
pub(crate) struct LibcxxStreams {
    pub(super) pid: u32,
    pub(super) types: FileBufferTypes,
    pub(super) files: GlibcStreams,
    pub(super) search: RefCell<FileBufferSearch>,
}

impl LibcxxStreams {
    /// Returns the open file buffer at an address; None if there is none.
    fn file_buffer(
        &self,
        memory: &dyn Memory,
        at: u64,
        files: &FilesByAddress,
        kept: u64,
    ) -> Option<FileBuffer> {
        let copy = structure::<OBJECT_BYTES>(memory, at)?;
        let read = |object: &[u8; OBJECT_BYTES]| {
            let is_one = self.types.contains(word(object, 0)) && libcxx_filebuf::is_open(at, object);
            let file = if is_one {
                inner_file(memory, libcxx_filebuf::c_file(object), files)?
            } else {
                return None;
            };
            let stream = libcxx_filebuf::stream(memory, at, object, file, kept);
            stream.map(|stream| self.types.as_far_as_known(word(object, 0), stream))
        };
        let stream = read_stable(memory, at, copy, read)?;
        Some(FileBuffer { at, file: libcxx_filebuf::c_file(&copy), stream })
    }
}

impl Walker for LibcxxStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::CPP
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let files = self.files.files(memory);
        let by_address = files.iter().copied().collect();
        let read = |at: u64, kept: u64| self.file_buffer(memory, at, &by_address, kept);
        self.search.borrow_mut().read_all((self.pid, memory), Some(&files), &self.types, read, kept)
    }

    fn pending_of_stopped(
        &self,
        memory: &dyn Memory,
        threads: &[crate::ThreadRegisters],
    ) -> Vec<crate::PendingBytes> {
        let mut pending = self.pending(memory);
        for one in &mut pending {
            let lock = one.inner.map(|inner| inner.lock);
            // A thread that wakes another one has released the lock, but has not noted yet that it has handed the bytes over.
            let wakes = |thread: &crate::ThreadRegisters| Some(thread.general[FIRST_ARGUMENT]) == lock;
            if threads.iter().any(wakes) {
                one.locked = Some(true);
            }
        }
        pending
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(LibcxxStreams { pid: child, ..self.clone() }))
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

/// The number of the register with the first argument of a system call.
const FIRST_ARGUMENT: usize = 7;

/// Returns the state of the FILE of a file buffer; None if it is no open FILE.
fn inner_file(memory: &dyn Memory, at: u64, files: &FilesByAddress) -> Option<InnerFile> {
    let file = files.get(&at)?;
    let lock = word(file, glibc::LOCK);
    let (locked, lock_owner) = glibc::lock(memory, lock);
    let area = (word(file, glibc::BUFFER_START), word(file, glibc::BUFFER_END));
    let is_putting = word(file, 0) & glibc::PUTTING != 0;
    let pending = word(file, glibc::WRITE_PTR).checked_sub(word(file, glibc::WRITE_BASE));
    let pending_bytes = if is_putting { pending? } else { 0 };
    let fd = Some(int(file, glibc::FILENO)).filter(|fd| *fd >= 0)?;
    let flush_position =
        glibc::flush_position(file).map(|position| position.of_rest(pending_bytes as usize, 0));
    Some(InnerFile { fd, pending_bytes, area, lock, locked, lock_owner, flush_position })
}
