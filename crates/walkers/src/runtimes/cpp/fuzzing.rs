//! The entry point of fuzz/ into the file buffers of C++.

use std::cell::RefCell;

use weir_sys::memory::Memory;

use super::CppStreams;
use super::types::FileBufferTypes;
use crate::fuzzing::{BASE, NO_PROCESS};
use crate::runtimes::glibc::GlibcStreams;

/// Returns a walker of the types whose name is at an address; None if there are none.
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
