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

use super::validate::Judge;
use super::layouts::Layouts;
use super::stacks;
use crate::Walker;
use crate::candidates::{self, Sighting};
use crate::open_descriptors::Descriptors;
use crate::heap_search::touched;
use crate::pending::{self, Whole};
use crate::copied_memory::STREAMS_MOST;
use crate::search_cache::Sought;

/// The streams of a process.
#[derive(Debug)]
pub(crate) struct Files {
    pub pid: u32,
    pub layouts: Arc<Layouts>,
    /// Where `STDOUT` is, if a symbol says so.
    pub stdout: Option<u64>,
    /// Each by its address and the number of its layout.
    pub sought: RefCell<Sought<usize>>,
}

impl Files {
    fn objects(&self, memory: &dyn Memory, judge: &Judge) -> BTreeSet<(u64, usize)> {
        let mut found = BTreeSet::new();
        touched(self.pid, memory, |start, data| {
            for (number, layout) in self.layouts.all.iter().enumerate() {
                for at in layout.candidates(data).map(|at| start + at as u64) {
                    if found.len() < STREAMS_MOST && judge.sighting(at, layout).is_some() {
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
fn owned(found: Vec<Whole>) -> Vec<Whole> {
    let has = |one: &&Whole| one.buffer.pending_bytes + one.buffer.unread_bytes > 0;
    let full_ones = |fd: i32| found.iter().filter(has).filter(|one| one.buffer.fd == fd).count();
    let stays = |one: &&Whole| match (one.buffer.fd, full_ones(one.buffer.fd)) {
        (0..=2, _) | (_, 0) => true,
        (_, full) => full == 1 && has(one),
    };
    found.iter().filter(stays).cloned().collect()
}

impl Walker for Files {
    fn walker(&self) -> RuntimeId {
        RuntimeId::RUST
    }

    fn streams(&self, memory: &dyn Memory, kept: u64) -> Vec<Whole> {
        let descriptors = Descriptors::of(self.pid);
        let open_for = |fd, writes| descriptors.open_for(fd, writes);
        let judge = Judge { memory, layouts: &self.layouts, stdout: self.stdout, open_for: &open_for, kept };
        let unused = stacks::unused(self.pid);
        let is_used = |at: u64| !unused.iter().any(|(low, high)| (*low..*high).contains(&at));
        let mut sought = self.sought.borrow_mut();
        let places = sought.places(|| self.objects(memory, &judge));
        let used = places.iter().filter(|(at, _)| is_used(*at));
        let seen: Vec<Sighting> =
            used.filter_map(|&(at, number)| judge.sighting(at, &self.layouts.all[number])).collect();
        sought.note(&seen);
        // What waits only grows until it is first written.
        let behind = |one: &Sighting, all: &[Sighting]| {
            let more = |other: &Sighting| other.whole.buffer.pending_bytes > one.whole.buffer.pending_bytes;
            all.iter().any(more) && descriptors.is_unwritten(one.whole.buffer.fd)
        };
        let left_behind = |one: &Sighting, all: &[Sighting]| {
            sought.is_still(one.at, &candidates::addresses(all)) || behind(one, all)
        };
        owned(candidates::settled(seen, left_behind))
    }

    fn moves(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        pending::moves(self.streams(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        let (layouts, sought) = (Arc::clone(&self.layouts), self.sought.clone());
        Some(Box::new(Files { pid: child, layouts, stdout: self.stdout, sought }))
    }

    fn search_again(&self) {
        self.sought.borrow_mut().forget();
    }
}
