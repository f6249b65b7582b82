//! Perl's own buffers: those of the layers of its file handles (PerlIO), the same since 5.14.
//!
//! Perl tells by symbols where the functions of its layers are, but not where its table of handles is. A slot of
//! that table holds its own address: so the tables are found by a search of the program's memory. A handle is
//! believed only if each of its layers points back to its slot, and the lowest one is that of a descriptor.

mod layers;
mod tables;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use weir_model::trace::RuntimeId;
use weir_sys::memory::Memory;

use super::pending::Whole;
use crate::Walker;

pub(super) use layers::Layers;

/// The streams of a process with Perl.
#[derive(Debug)]
pub struct Perl {
    pid: u32,
    layers: Layers,
    /// The tables of handles that the last search found; new handles are in these as well.
    seen: RefCell<BTreeSet<u64>>,
    /// The next search is one of all memory: it takes milliseconds, and a look now and then may not.
    all: Cell<bool>,
}

impl Perl {
    pub(super) fn new(pid: u32, layers: Layers) -> Perl {
        Perl { pid, layers, seen: RefCell::default(), all: Cell::new(false) }
    }

    fn of_tables(&self, memory: &dyn Memory, tables: &BTreeSet<u64>, kept: u64) -> Vec<Whole> {
        let handles = tables::handles(memory, tables);
        handles.into_iter().filter_map(|(slot, top)| self.layers.whole(memory, slot, top, kept)).collect()
    }
}

impl Walker for Perl {
    fn walker(&self) -> RuntimeId {
        RuntimeId::PERL
    }

    fn streams(&self, memory: &dyn Memory, kept: u64) -> Vec<Whole> {
        let mut seen = self.seen.borrow_mut();
        let found = self.of_tables(memory, &seen, kept);
        if !found.is_empty() {
            return found;
        }
        *seen = tables::search(self.pid, memory, self.all.get(), |slot, top| {
            self.layers.descriptor(memory, slot, top).is_some()
        });
        self.of_tables(memory, &seen, kept)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(Perl {
            pid: child,
            layers: self.layers,
            seen: self.seen.clone(),
            all: self.all.clone(),
        }))
    }

    fn search_again(&self) {
        self.seen.borrow_mut().clear();
        self.all.set(true);
    }
}
