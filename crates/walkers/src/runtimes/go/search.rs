//! The search of a Go program's memory for the objects of bufio. Another thread can make it.

use std::collections::BTreeSet;

use weir_sys::memory::Memory;

use super::bufio::{BufioType, BufioValidator};
use super::live_objects::LiveObjects;
use super::{GoItabs, GoStreams};
use crate::copied_memory::MAX_STREAMS;
use crate::found_objects::FoundObjects;
use crate::heap_search::touched;
use crate::open_descriptors::OpenDescriptors;

/// The result of a search.
#[derive(Debug, Clone, Default)]
pub(super) struct GoObjects {
    pub objects: BTreeSet<(u64, BufioType)>,
    /// The Writers that nothing moves.
    pub fixed: BTreeSet<u64>,
    /// The number of bytes that the search has read.
    pub bytes: u64,
    /// The address of the list of goroutines, if it is known now.
    pub goroutines: Option<u64>,
}

impl FoundObjects for GoObjects {
    fn add_former(&mut self, former: GoObjects, is_valid: &dyn Fn(u64) -> bool) {
        self.objects.add_former(former.objects, is_valid);
    }
}

impl GoStreams {
    /// Returns a search for the objects.
    pub(super) fn search(&self) -> impl FnOnce(&dyn Memory) -> GoObjects + Send + use<> {
        let known = GoStreams::new(self.pid, self.tables.clone(), self.goroutines.get());
        let go = GoStreams { sections: self.sections.clone(), ..known };
        move |memory| {
            let descriptors = OpenDescriptors::of(go.pid);
            let open_for = |fd, writes| descriptors.open_for(fd, writes);
            let validator = BufioValidator { memory, tables: &go.tables, open_for: &open_for, kept: 0 };
            let (objects, bytes) = objects(go.pid, memory, &go.tables, &validator);
            let fixed = go.fixed_writers(memory, &objects);
            GoObjects { objects, fixed, bytes, goroutines: go.goroutines.get() }
        }
    }

    /// Returns those of the Writers that are variables or objects of the heap.
    fn fixed_writers(&self, memory: &dyn Memory, found: &BTreeSet<(u64, BufioType)>) -> BTreeSet<u64> {
        let writers = found.iter().filter(|(_, kind)| *kind == BufioType::Writer);
        let mut writers: Vec<u64> = writers.map(|(at, _)| *at).collect();
        if !writers.is_empty() {
            let live = LiveObjects::search(self.pid, memory, self.goroutine_list(memory), &writers);
            writers.retain(|at| live.is_fixed(memory, *at));
        }
        writers.into_iter().collect()
    }
}

/// Returns the objects, and the number of bytes that the search has read.
pub(super) fn objects(
    pid: u32,
    memory: &dyn Memory,
    tables: &GoItabs,
    validator: &BufioValidator,
) -> (BTreeSet<(u64, BufioType)>, u64) {
    let (mut found, mut bytes, range) = (BTreeSet::new(), 0, tables.range());
    touched(pid, memory, |start, data| {
        bytes += data.len() as u64;
        for (index, value) in data.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)).enumerate() {
            if range.contains(&value) && found.len() < MAX_STREAMS {
                let candidates = validator.around(start + 8 * index as u64, value);
                found.extend(candidates.filter(|(at, kind)| validator.stream(*at, *kind).is_some()));
            }
        }
    });
    (found, bytes)
}
