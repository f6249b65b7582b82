//! Buffer walkers: read the stream buffers in a process's memory, one file or folder for each C library or runtime.
//!
//! A walker never trusts a pointer: it checks bounds, loops and torn reads before it uses a value.

mod c_library;
mod candidates;
mod copied_memory;
mod elf_image;
mod found_objects;
#[doc(hidden)] // for fuzz/ only
pub mod fuzzing;
mod heap_search;
mod hook;
mod image_memory;
mod joined_streams;
mod kept_records;
mod known_objects;
mod logger;
mod open_descriptors;
mod outside_write;
mod pending_bytes;
mod process_images;
mod process_streams;
mod program_detection;
mod runtime_entry;
mod runtime_options;
mod search_cache;
mod search_thread;
mod stream_buffer;
mod suspended_flush;
#[cfg(test)]
pub(crate) mod tests;
mod unseen_descriptors;
mod write_epoch;

/// The runtimes, one file or folder each.
mod runtimes {
    include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));
}

use std::any::Any;
use std::ops::Range;
use std::time::Instant;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

pub use elf_image::{StreamListHead, begins_with_streams, is_go, is_plain, list_head, needs_stops};
pub use heap_search::{
    UNSEARCHED, USER_SEARCH_TIME, set_search_time, take_search_cut, take_search_cut_of, take_search_ns,
};
pub use hook::{Hook, HookVariable};
pub use joined_streams::{JoinedStreams, join_pending};
pub use kept_records::kept_records;
pub use logger::logger_of;
pub use outside_write::OutsideWrite;
pub use pending_bytes::{CountWord, FlushPosition, InnerStream, MemoryStore, PendingBytes, StreamCopy};
pub use process_images::{
    functions, language_of_unreadable, unreadable, unreadable_of_file, walkers, walkers_missing,
};
pub use process_streams::{
    MAX_PENDING, PendingRead, StreamPreview, UnconvertedBytes, buffers, pending, pending_and_ambiguous,
    pending_of_stopped, previews, unconverted,
};
pub use program_detection::{ProgramDetection, ProgramNames, detect_runtime, runtime_of};
pub use runtime_entry::{
    BufferAccess, RuntimeEntry, UnreachedBuffers, UnreadableEntry, WalkerEntry, runtime_by_id, runtimes,
};
pub use runtime_options::{IgnoresEnvironment, OptionSyntax};
pub use runtimes::cpython::entry_for as python_entry_for;
pub use runtimes::glibc::{GlibcStreams, WRITE_PTR as GLIBC_WRITE_POINTER};
pub use runtimes::go::contains_compressor as go_contains_compressor;
pub use runtimes::mawk::entry_for as mawk_entry_for;
pub use runtimes::ruby::rescued_at_end as ruby_rescued_at_end;
pub use search_cache::DueSearch;
pub use suspended_flush::{STACK_POINTER, SuspendedFlush, SuspendedFlushes, ThreadRegisters};
pub use unseen_descriptors::{
    UnseenDescriptor, hidden_stdout_sentence, named_and_counted, queued_at_exit, unseen_at_kill,
    unseen_descriptors, unseen_sentence,
};
pub use write_epoch::WriteEpoch;

use copied_memory::{MAX_BUFFER, PENDING_KEPT};
use process_images::{Detected, ProcessImages};
use stream_buffer::StreamBuffer;

/// Reads the stream buffers of one runtime in one process. The walkers of a process stay valid until its next
/// execve(2).
pub trait Walker: Send {
    /// Returns the runtime that owns the buffers.
    fn runtime(&self) -> RuntimeId;

    /// Reads all streams, also empty ones, with at most `kept` pending bytes of each.
    #[doc(hidden)] // `StreamBuffer` is private
    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer>;

    /// Returns the buffers of all streams, also of empty ones.
    fn buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        stream_buffer::buffers(self.read(memory, PENDING_KEPT))
    }

    /// As [`Walker::read`], in the order in which the runtime itself would write the streams at exit.
    #[doc(hidden)] // `StreamBuffer` is private
    fn read_in_exit_order(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        self.read(memory, kept)
    }

    /// Returns all pending bytes of each stream that has some, in the order in which the runtime itself would write
    /// them at exit. Leaves out streams whose bytes cannot be read.
    fn pending(&self, memory: &dyn Memory) -> Vec<PendingBytes> {
        stream_buffer::pending(self.read_in_exit_order(memory, MAX_BUFFER))
    }

    /// As [`Walker::pending`], while all threads of the process are stopped in system calls. A runtime that schedules threads
    /// by itself can have suspended one inside a stream; the stores of its streams are known only now. `threads` has the
    /// registers of all threads, or is empty if they are unknown.
    fn pending_of_stopped(&self, memory: &dyn Memory, threads: &[ThreadRegisters]) -> Vec<PendingBytes> {
        let _ = threads;
        self.pending(memory)
    }

    /// Returns the address, aligned to 8 bytes, of the word that changes at each write into this buffer. None if it is
    /// unknown, or if the code that changes it belongs to an interpreter and does not show the program's call site.
    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        let _ = (memory, buffer);
        None
    }

    /// Returns the number of log records that the program keeps as objects and has not formatted yet.
    fn kept_records(&self, memory: &dyn Memory) -> u64 {
        let _ = memory;
        0
    }

    /// Returns the buffers with pending bytes of streams whose bytes go to a function of the program, not at once to a descriptor.
    fn cookie_buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let _ = memory;
        Vec::new()
    }

    /// Returns the addresses of text layers that hold bytes before a stream, each with the address of that stream.
    fn text_layers(&self, memory: &dyn Memory) -> Vec<(u64, u64)> {
        let _ = memory;
        Vec::new()
    }

    /// Returns the addresses of those streams of the last read in which a thread is executing, also of empty ones. Empty if
    /// that is unknown.
    fn streams_in_use(&self, memory: &dyn Memory) -> Vec<u64> {
        let _ = memory;
        Vec::new()
    }

    /// Returns the number of bytes in CPython's objects before their count of references and their type. Only in a
    /// free-threaded interpreter it is not 0. The offsets of all fields grow by this number.
    fn bytes_before_counts(&self) -> u64 {
        0
    }

    /// Returns the code range of the interpreter. A thread that executes it is not inside a change of a stream, and
    /// each change returns to it. Empty if the runtime has no such code.
    fn interpreter_code(&self) -> Range<u64> {
        0..0
    }

    /// Returns the walker of a child that this process has just forked. None: search for the child's walkers.
    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        let _ = child;
        None
    }

    /// Returns the addresses of the objects that a search has found.
    fn found_objects(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Continues the search of a former walker of the same image, which has found these objects. From now on a snapshot
    /// searches a part of the memory at most, until [`Walker::search_again`].
    fn continue_search(&self, objects: Vec<u64>) {
        let _ = objects;
    }

    /// Gives the walker the writes of the process before a read. A walker that searches for streams decides by them which
    /// bytes are certainly not written yet.
    fn note_writes(&self, epoch: &WriteEpoch) {
        let _ = epoch;
    }

    /// Returns which streams of the last read a killed process was flushing, by the registers of its threads. None if the
    /// runtime has no threads of its own.
    fn suspended_flushes(
        &self,
        memory: &dyn Memory,
        threads: &[ThreadRegisters],
    ) -> Option<SuspendedFlushes> {
        let _ = (memory, threads);
        None
    }

    /// Returns the addresses of those of the `buffers` of the last read that a thread of the runtime may have written without
    /// noting it: at the end of a process whose threads' registers are unknown. If that read did not search all memory, these are
    /// all with pending bytes.
    fn flushing(&self, memory: &dyn Memory, buffers: &[Buffer]) -> Vec<u64> {
        let _ = (memory, buffers);
        Vec::new()
    }

    /// Sets what a snapshot does if a search is due. A walker that searches once ignores it.
    fn set_due_search(&self, due_search: DueSearch) {
        let _ = due_search;
    }

    /// Returns the results of the walker's searches, for [`Walker::adopt_searches`] of the next walker of the same image.
    fn searches(&self) -> Option<&dyn Any> {
        None
    }

    /// Continues the searches of a former walker of the same image and process, with their results. Ignores those of another
    /// kind of walker.
    fn adopt_searches(&self, former: &dyn Any) {
        let _ = former;
    }

    /// Returns the begin of the last search of all memory; None if there was none, or the walker needs none.
    fn last_search(&self) -> Option<Instant> {
        None
    }

    /// Makes the next snapshot search all memory for streams. Those that are known stay so if the search is cut.
    fn search_again(&self) {}

    /// Makes the next snapshot find the streams that were made since the last search. By default it searches all memory.
    fn search_for_new(&self) {
        self.search_again();
    }
}
