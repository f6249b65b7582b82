//! The entry point of fuzz/ into the buffers of Rust.

use std::ops::ControlFlow;

use weir_sys::memory::Memory;

use super::layouts::{BufferTarget, RustLayout, RustLayouts};
use super::validate::BufferValidator;
use crate::candidates;
use crate::copied_memory::PENDING_KEPT;
use crate::fuzzing::{BASE, NO_PROCESS};
use crate::heap_search::blocks;

const WRITER: RustLayout = RustLayout {
    inner: BufferTarget::Descriptor,
    inner_at: 28,
    capacity: 0,
    data: 8,
    length: 16,
    panicked: Some(24),
    used: None,
};
const STDOUT: RustLayout = RustLayout { inner: BufferTarget::Stdout, inner_at: 32, ..WRITER };
const READER: RustLayout = RustLayout {
    inner: BufferTarget::Descriptor,
    inner_at: 40,
    capacity: 8,
    data: 0,
    length: 24,
    panicked: None,
    used: Some(16),
};

/// Reads all objects of three layouts.
pub(crate) fn walk(memory: &dyn Memory) {
    let layouts = RustLayouts { all: vec![WRITER, STDOUT, READER], lines: true, ..RustLayouts::default() };
    let validator = BufferValidator {
        memory,
        layouts: &layouts,
        stdout: Some(BASE),
        open_for: &|_, _| true,
        kept: PENDING_KEPT,
    };
    let mut found = Vec::new();
    blocks(NO_PROCESS, memory, |start, data| {
        for layout in &layouts.all {
            let likely =
                layout.candidates(data).filter_map(|at| validator.candidate(start + at as u64, layout));
            found.extend(likely);
        }
        ControlFlow::Continue(())
    });
    let streams = candidates::resolve(found, |_, _| false);
    assert!(streams.iter().all(|one| one.buffer.pending.len() as u64 <= PENDING_KEPT));
}
