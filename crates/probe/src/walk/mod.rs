//! Walkers: the stream buffers in a program's own memory, one file a C library or runtime.
//!
//! A walker never trusts a pointer: bounds, loops and torn reads are checked before anything is believed.

use weir_model::trace::{Buffer, Walker};

use crate::memory::Memory;

/// Knows where one process keeps its streams. It is made once for an image and asked often.
pub trait Walk: Send {
    /// Whose buffers it reads.
    fn walker(&self) -> Walker;

    /// Every stream, those with nothing in them as well.
    fn buffers(&self, memory: &dyn Memory) -> Vec<Buffer>;
}
