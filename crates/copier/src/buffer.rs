//! The buffer of a thread, aligned for direct I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The alignment of direct I/O on every usual device.
pub(crate) const ALIGNMENT: usize = 4096;

/// Bytes at an address that is a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
}

impl AlignedBuffer {
    /// Allocates at least `bytes`, a multiple of the alignment.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        let layout = Self::layout(bytes);
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Self { start, bytes },
            None => handle_alloc_error(layout),
        }
    }

    /// Makes the buffer at least `bytes` long. Its content is lost.
    pub fn grow(&mut self, bytes: usize) {
        if bytes > self.bytes {
            *self = Self::new(bytes);
        }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, ALIGNMENT).expect("a size below isize::MAX")
    }
}

// SAFETY: the buffer owns its memory, and only its owner reaches it.
unsafe impl Send for AlignedBuffer {}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the memory with this layout.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is initialized and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}
