//! Rust's `BufWriter`, `LineWriter` and `BufReader` over a descriptor or standard output, in programs whose debug
//! information describes their memory layout.
//!
//! No list leads to the objects, so the walker searches the heap and the stacks for their form. It accepts an object
//! if its descriptor is open for the direction, its size is one that the allocator returned or the library's default,
//! and no copy of the object contradicts it. See [`Drainable`] for what makes it safe to write their bytes.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::layouts::RustLayouts;
use super::stacks;
use super::validate::{self, BufferValidator};
use crate::candidates::{self, StreamCandidate};
use crate::copied_memory::MAX_STREAMS;
use crate::heap_search::touched;
use crate::open_descriptors::OpenDescriptors;
use crate::search_cache::SearchCache;
use crate::stream_buffer::{self, StreamBuffer};
use crate::{DueSearch, Walker, WriteEpoch};

/// The walker of a program's own buffers.
#[derive(Debug)]
pub(crate) struct RustBuffers {
    pub pid: u32,
    pub layouts: Arc<RustLayouts>,
    /// Address of `STDOUT`, if the program has the symbol.
    pub stdout: Option<u64>,
    /// Each object has an address and the index of its layout.
    pub cache: RefCell<SearchCache<RustObjects>>,
    /// The process has the memory and the files of its parent.
    pub forked: bool,
}

/// The objects of a process, each with the index of its layout.
type RustObjects = BTreeSet<(u64, usize)>;

impl RustBuffers {
    /// Returns a search for the objects, which another thread can make.
    fn search(&self) -> impl FnOnce(&dyn Memory) -> RustObjects + Send + use<> {
        let (pid, layouts, stdout) = (self.pid, Arc::clone(&self.layouts), self.stdout);
        move |memory| {
            let descriptors = OpenDescriptors::of(pid);
            let open_for = |fd, writes| descriptors.open_for(fd, writes);
            let validator =
                BufferValidator { memory, layouts: &layouts, stdout, open_for: &open_for, kept: 0 };
            find_objects(pid, memory, &layouts, &validator)
        }
    }
}

fn find_objects(
    pid: u32,
    memory: &dyn Memory,
    layouts: &RustLayouts,
    validator: &BufferValidator,
) -> RustObjects {
    let mut found = BTreeSet::new();
    touched(pid, memory, |start, data| {
        for (number, layout) in layouts.all.iter().enumerate() {
            for at in layout.candidates(data).map(|at| start + at as u64) {
                if found.len() < MAX_STREAMS && validator.candidate(at, layout).is_some() {
                    found.insert((at, number));
                }
            }
        }
    });
    found
}

/// Drops empty streams whose descriptor is that of a stream with bytes, and marks those that `is_owner` denies: their descriptor may
/// belong to another stream, so that their bytes are old ones of a file that was closed.
fn owned(found: Vec<StreamBuffer>, is_owner: impl Fn(&StreamBuffer) -> bool) -> Vec<StreamBuffer> {
    let has = |one: &StreamBuffer| one.buffer.pending_bytes + one.buffer.unread_bytes > 0;
    let full: Vec<i32> = found.iter().filter(|one| has(one)).map(|one| one.buffer.fd).collect();
    let is_shared = |one: &StreamBuffer| full.iter().filter(|fd| **fd == one.buffer.fd).count() > 1;
    let stays = |one: &StreamBuffer| one.buffer.fd <= 2 || has(one) || !full.contains(&one.buffer.fd);
    let mark = |one: StreamBuffer| match (is_shared(&one), is_owner(&one)) {
        _ if !has(&one) || one.buffer.fd <= 2 => one,
        (false, true) => one,
        (is_shared, _) => one.with_ambiguous_owner(is_shared),
    };
    found.iter().filter(|one| stays(one)).cloned().map(mark).collect()
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
        let mut cache = self.cache.borrow_mut();
        let objects = cache.objects((self.pid, memory), || self.search()).clone();
        if objects.is_empty() {
            return Vec::new();
        }
        let stacks = stacks::read(self.pid);
        let is_used = |at: u64| !stacks.iter().any(|stack| stack.is_unused(at));
        let used = objects.iter().filter(|(at, _)| is_used(*at));
        let candidates_now: Vec<StreamCandidate> =
            used.filter_map(|&(at, number)| validator.candidate(at, &self.layouts.all[number])).collect();
        let is_first = |one: &StreamCandidate, none_yet: bool| {
            none_yet || !self.forked && descriptors.is_unwritten(one.stream.buffer.fd)
        };
        cache.record(self.pid, &candidates_now, is_first);
        let drainable = Drainable { layouts: &self.layouts, memory, stacks: &stacks, cache: &cache };
        let (sure, unwritten) = (drainable.buffers(&candidates_now), drainable.unwritten(&candidates_now));
        let all = candidates_now.clone();
        // Until the first write to the file the number of pending bytes only grows, so the smaller one is stale.
        let has_fewer = |one: &StreamCandidate, all: &[StreamCandidate]| {
            let more =
                |other: &StreamCandidate| other.stream.buffer.pending_bytes > one.stream.buffer.pending_bytes;
            all.iter().any(more) && descriptors.is_unwritten(one.stream.buffer.fd)
        };
        let is_stale = |one: &StreamCandidate, all: &[StreamCandidate]| {
            cache.is_stale_copy(one.at, &candidates::addresses(all)) || has_fewer(one, all)
        };
        let resolved = candidates::resolve(candidates_now, is_stale);
        let mut found = owned(resolved, |one| owns_descriptor(&one.buffer, &all));
        for one in &mut found {
            one.unwritten =
                one.copies.is_empty() && one.note.is_some_and(|note| unwritten.contains(&note.address));
            if !one.unwritten && !sure.contains(&one.buffer.address) {
                (one.data_address, one.note) = (None, None);
            }
        }
        found
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        let (layouts, cache) = (Arc::clone(&self.layouts), self.cache.clone());
        Some(Box::new(RustBuffers { pid: child, layouts, stdout: self.stdout, cache, forked: true }))
    }

    fn note_writes(&self, epoch: &WriteEpoch) {
        self.cache.borrow_mut().note_writes(epoch);
    }

    fn last_search(&self) -> Option<std::time::Instant> {
        self.cache.borrow().searched()
    }

    fn set_due_search(&self, due_search: DueSearch) {
        self.cache.borrow_mut().set_due_search(due_search);
    }

    fn searches(&self) -> Option<&dyn Any> {
        Some(&self.cache)
    }

    fn adopt_searches(&self, former: &dyn Any) {
        if let Some(former) = former.downcast_ref::<RefCell<SearchCache<RustObjects>>>() {
            self.cache.borrow_mut().continue_from(former.take());
        }
    }

    fn search_again(&self) {
        self.cache.borrow_mut().invalidate();
    }
}

/// Decides which objects are certainly live writers of the program, so that weir may write their bytes.
///
/// Weir never changes these objects: a compiler may keep the number of pending bytes in a register or as a constant, and
/// store it later. It writes the bytes ahead of the program, whose own write of them begins at the buffer's address and is
/// skipped. So the only condition is that the bytes before the number in memory are the next ones that this buffer
/// writes. While the program runs, [`crate::write_epoch`] shows it. At its end a writer that was not observed counts if
/// its buffer is allocated; if another writer claims its descriptor, the file must show that the bytes are not written.
struct Drainable<'a> {
    layouts: &'a RustLayouts,
    memory: &'a dyn Memory,
    stacks: &'a [stacks::ThreadStack],
    cache: &'a SearchCache<RustObjects>,
}

impl Drainable<'_> {
    /// Returns the addresses of the buffers that can be written at the program's end.
    fn buffers(&self, all: &[StreamCandidate]) -> BTreeSet<u64> {
        let sure = |one: &&StreamCandidate| self.is_allocated(one) && self.has_number(one);
        let known = all.iter().filter(|_| !self.layouts.has_lookalike);
        known.filter(sure).map(|one| one.stream.buffer.address).collect()
    }

    /// Returns the addresses of the numbers of bytes that are certainly not written.
    fn unwritten(&self, all: &[StreamCandidate]) -> BTreeSet<u64> {
        let sure = |one: &&StreamCandidate| self.cache.are_unwritten(one.at) && self.has_number(one);
        let known = all.iter().filter(|_| !self.layouts.has_lookalike);
        known.filter(sure).filter_map(|one| Some(one.stream.note?.address)).collect()
    }

    fn is_allocated(&self, one: &StreamCandidate) -> bool {
        let buffer = &one.stream.buffer;
        validate::chunk_is_used(self.memory, buffer.address, buffer.buffer_bytes) == Some(true)
    }

    /// Returns whether memory has the number of bytes. Of a writer on the stack whose address no function has got yet it
    /// can be missing, unless a call can panic before it changes; so weir waits until it has changed.
    fn has_number(&self, one: &StreamCandidate) -> bool {
        let is_local = || self.stacks.iter().any(|stack| stack.contains(one.at));
        let can_miss = || !self.layouts.unwinds || one.stream.buffer.pending.last() == Some(&0);
        self.cache.has_changed(one.at) || !is_local() || !can_miss()
    }
}

/// Returns whether no other writer claims the same descriptor, except the standard ones.
fn owns_descriptor(buffer: &Buffer, all: &[StreamCandidate]) -> bool {
    let conflicts = |other: &StreamCandidate| {
        let other_buffer = &other.stream.buffer;
        other.stream.note.is_some() && other_buffer.fd == buffer.fd && other_buffer.address != buffer.address
    };
    (0..=2).contains(&buffer.fd) || !all.iter().any(conflicts)
}
