//! Rust's `BufWriter`, `LineWriter` and `BufReader` over a descriptor or standard output, in programs whose debug
//! information describes their memory layout.
//!
//! No list leads to the objects, so the walker searches the heap and the stacks for their form. It accepts an object
//! if its descriptor is open for the direction, its size is one that the allocator returned or the library's default,
//! and no copy of the object contradicts it. The buffers cannot be drained from outside: their state may be in
//! registers too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::layouts::RustLayouts;
use super::stacks;
use super::validate::BufferValidator;
use crate::Walker;
use crate::candidates::{self, StreamCandidate};
use crate::copied_memory::STREAMS_MOST;
use crate::heap_search::touched;
use crate::open_descriptors::OpenDescriptors;
use crate::search_cache::SearchCache;
use crate::stream_buffer::{self, StreamBuffer};

/// The walker of a program's own buffers.
#[derive(Debug)]
pub(crate) struct RustBuffers {
    pub pid: u32,
    pub layouts: Arc<RustLayouts>,
    /// Address of `STDOUT`, if the program has the symbol.
    pub stdout: Option<u64>,
    /// Each object has an address and the index of its layout.
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

/// Drops stale streams. A file has one owner, except for the standard streams: another stream with its descriptor
/// belongs to a file that was closed before. Of several streams the empty ones are dropped; if several have bytes,
/// all are dropped.
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
        let validator = BufferValidator {
            memory,
            layouts: &self.layouts,
            stdout: self.stdout,
            open_for: &open_for,
            kept,
        };
        let unused = stacks::unused(self.pid);
        let is_used = |at: u64| !unused.iter().any(|(low, high)| (*low..*high).contains(&at));
        let mut cache = self.cache.borrow_mut();
        let objects = cache.objects(|| self.objects(memory, &validator));
        let used = objects.iter().filter(|(at, _)| is_used(*at));
        let candidates_now: Vec<StreamCandidate> =
            used.filter_map(|&(at, number)| validator.candidate(at, &self.layouts.all[number])).collect();
        cache.record(&candidates_now);
        // Until the first write to the file the number of pending bytes only grows, so the smaller one is stale.
        let has_fewer = |one: &StreamCandidate, all: &[StreamCandidate]| {
            let more =
                |other: &StreamCandidate| other.stream.buffer.pending_bytes > one.stream.buffer.pending_bytes;
            all.iter().any(more) && descriptors.is_unwritten(one.stream.buffer.fd)
        };
        let is_stale = |one: &StreamCandidate, all: &[StreamCandidate]| {
            cache.is_stale_copy(one.at, &candidates::addresses(all)) || has_fewer(one, all)
        };
        owned(candidates::resolve(candidates_now, is_stale))
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
