//! Rust's `BufWriter`, `LineWriter` and `BufReader` over a descriptor or standard output, where the program's debug
//! information says how they lie in memory.
//!
//! No list leads to them: the heap and the stacks are searched for what has the right form. It is believed if its
//! descriptor is open for that, its size is one that the allocator gave out or the library's own, and no other copy
//! of it says something else. It cannot be emptied from outside: what it holds may be in registers too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::validate::BufferValidator;
use super::layouts::RustLayouts;
use super::stacks;
use crate::Walker;
use crate::candidates::{self, StreamCandidate};
use crate::open_descriptors::OpenDescriptors;
use crate::heap_search::touched;
use crate::stream_buffer::{self, StreamBuffer};
use crate::copied_memory::STREAMS_MOST;
use crate::search_cache::SearchCache;

/// The streams of a process.
#[derive(Debug)]
pub(crate) struct RustBuffers {
    pub pid: u32,
    pub layouts: Arc<RustLayouts>,
    /// Where `STDOUT` is, if a symbol says so.
    pub stdout: Option<u64>,
    /// Each by its address and the number of its layout.
    pub cache: RefCell<SearchCache<usize>>,
}

impl RustBuffers {
    fn objects(&self, memory: &dyn Memory, validator: &BufferValidator) -> BTreeSet<(u64, usize)> {
        let mut found = BTreeSet::new();
        touched(self.pid, memory, |start, data| {
            for (number, layout) in self.layouts.all.iter().enumerate() {
                for at in layout.candidates(data).map(|at| start + at as u64) {
                    if found.len() < STREAMS_MOST && validator.candidate(at, layout).is_some() {
                        found.insert((at, number));
                    }
                }
            }
        });
        found
    }
}

/// A file has one owner, but for standard output: another stream with its descriptor is what is left of one whose
/// file was closed before. The empty ones are out; if two have something in them it cannot be told which is which.
fn owned(found: Vec<StreamBuffer>) -> Vec<StreamBuffer> {
    let has = |one: &&StreamBuffer| one.buffer.pending_bytes + one.buffer.unread_bytes > 0;
    let full_ones = |fd: i32| found.iter().filter(has).filter(|one| one.buffer.fd == fd).count();
    let stays = |one: &&StreamBuffer| match (one.buffer.fd, full_ones(one.buffer.fd)) {
        (0..=2, _) | (_, 0) => true,
        (_, full) => full == 1 && has(one),
    };
    found.iter().filter(stays).cloned().collect()
}

impl Walker for RustBuffers {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::RUST
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let descriptors = OpenDescriptors::of(self.pid);
        let open_for = |fd, writes| descriptors.open_for(fd, writes);
        let validator = BufferValidator { memory, layouts: &self.layouts, stdout: self.stdout, open_for: &open_for, kept };
        let unused = stacks::unused(self.pid);
        let is_used = |at: u64| !unused.iter().any(|(low, high)| (*low..*high).contains(&at));
        let mut cache = self.cache.borrow_mut();
        let objects = cache.objects(|| self.objects(memory, &validator));
        let used = objects.iter().filter(|(at, _)| is_used(*at));
        let seen: Vec<StreamCandidate> =
            used.filter_map(|&(at, number)| validator.candidate(at, &self.layouts.all[number])).collect();
        cache.record(&seen);
        // What waits only grows until it is first written.
        let behind = |one: &StreamCandidate, all: &[StreamCandidate]| {
            let more = |other: &StreamCandidate| other.stream.buffer.pending_bytes > one.stream.buffer.pending_bytes;
            all.iter().any(more) && descriptors.is_unwritten(one.stream.buffer.fd)
        };
        let is_stale = |one: &StreamCandidate, all: &[StreamCandidate]| {
            cache.is_stale_copy(one.at, &candidates::addresses(all)) || behind(one, all)
        };
        owned(candidates::resolve(seen, is_stale))
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        let (layouts, cache) = (Arc::clone(&self.layouts), self.cache.clone());
        Some(Box::new(RustBuffers { pid: child, layouts, stdout: self.stdout, cache }))
    }

    fn search_again(&self) {
        self.cache.borrow_mut().invalidate();
    }
}
