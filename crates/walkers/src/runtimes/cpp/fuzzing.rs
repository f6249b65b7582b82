//! The entry point of fuzz/ into the file buffers of C++.

use std::cell::RefCell;

use weir_sys::memory::Memory;

use super::CppStreams;
use super::libcxx::LibcxxStreams;
use super::search::FileBufferSearch;
use super::types::FileBufferTypes;
use crate::fuzzing::{BASE, NO_PROCESS};
use crate::runtimes::glibc::GlibcStreams;

/// Returns a walker of libstdc++'s types whose name is at an address; None if there are none.
pub(crate) fn streams(memory: &dyn Memory, name: u64) -> Option<CppStreams> {
    let types = FileBufferTypes::find(memory, &[name], &[(BASE, 4096)]);
    (!types.tables.is_empty()).then(|| CppStreams {
        pid: NO_PROCESS,
        types,
        own_memory: vec![(BASE, BASE + 2048)],
        files: Some(GlibcStreams::at(BASE + 8)),
        search: RefCell::default(),
        facets: RefCell::default(),
    })
}

/// The same of libc++'s types.
pub(crate) fn libcxx_streams(memory: &dyn Memory, name: u64) -> Option<LibcxxStreams> {
    let types = FileBufferTypes::find(memory, &[name], &[(BASE, 4096)]);
    let search = RefCell::new(FileBufferSearch::of_used_files());
    let files = GlibcStreams::at(BASE + 8);
    (!types.tables.is_empty()).then_some(LibcxxStreams { pid: NO_PROCESS, types, files, search })
}
