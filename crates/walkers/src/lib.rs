//! Buffer walkers: read the stream buffers in a process's memory, one file or folder for each C library or runtime.
//!
//! A walker never trusts a pointer: it checks bounds, loops and torn reads before it uses a value.

mod c_library;
mod candidates;
mod copied_memory;
mod elf_image;
mod heap_search;
mod hook;
mod image_memory;
mod open_descriptors;
mod pending_bytes;
mod process_images;
mod runtime_entry;
mod search_cache;
mod stream_buffer;
#[cfg(test)]
pub(crate) mod tests;

/// The runtimes, one file or folder each.
mod runtimes {
    include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));
}

use std::ops::Range;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

pub use elf_image::{StreamListHead, begins_with_streams, is_go, is_plain, list_head, needs_stops};
pub use hook::{Hook, HookVariable, IgnoresEnvironment};
pub use pending_bytes::{MemoryStore, PendingBytes};
pub use process_images::{functions, unreadable, walkers, walkers_missing};
pub use runtime_entry::{
    BufferAccess, ProgramDetection, RuntimeEntry, WalkerEntry, compiled_runtime, detect_runtime, runtimes,
};
pub use runtimes::glibc::GlibcStreams;

use copied_memory::{BUFFER_MOST, PENDING_KEPT};
use process_images::{Detected, ProcessImages};
use stream_buffer::StreamBuffer;

/// Knows where one process keeps its streams. It is made once for an image and asked often.
pub trait Walker: Send {
    /// Whose buffers it reads.
    fn runtime(&self) -> RuntimeId;

    /// Every stream, those with nothing in them as well, with at most `kept` bytes of what waits in each.
    #[doc(hidden)] // what a stream is as a whole is for this crate
    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer>;

    /// What there is to be told of every stream.
    fn buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        stream_buffer::buffers(self.read(memory, PENDING_KEPT))
    }

    /// All that waits to be written in each stream that has something, in the order in which the runtime itself
    /// would write it when the program ends. Nothing where a walker can only say how much there is.
    fn pending(&self, memory: &dyn Memory) -> Vec<PendingBytes> {
        stream_buffer::pending(self.read(memory, BUFFER_MOST))
    }

    /// The word of the process's memory that changes at each write into this buffer, aligned to its 8 bytes; None: it
    /// is not known, or the machine code that changes it says nothing about the program (interpreters).
    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        let _ = (memory, buffer);
        None
    }

    /// Where text layers are that hold bytes before they hand them on, each with the stream that it hands them to.
    fn text_layers(&self, memory: &dyn Memory) -> Vec<(u64, u64)> {
        let _ = memory;
        Vec::new()
    }

    /// Code in which no stream is ever half changed, and to which each change of one comes back.
    fn interpreter_code(&self) -> Range<u64> {
        0..0
    }

    /// The walker of a process that was just forked from this one; None: it is to be found anew.
    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        let _ = child;
        None
    }

    /// Forgets where streams were seen, so that the next look finds those that are new, whatever that costs.
    fn search_again(&self) {}
}
