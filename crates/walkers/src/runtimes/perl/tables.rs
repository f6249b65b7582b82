//! The tables of Perl's handles: 64 slots each. The first slot points to the next table.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weir_sys::memory::Memory;

use crate::copied_memory::{MAX_STREAMS, structure, word};
use crate::heap_search::blocks;

/// Size of `struct _PerlIO` of perliol.h, and offsets in it. A slot is such a structure, and each layer begins with
/// one.
pub(super) const BASE_BYTES: usize = 32;
pub(super) const NEXT: usize = 0;
pub(super) const TAB: usize = 8;
pub(super) const HEAD: usize = 24;

const SLOTS: usize = 64;
const TABLE_BYTES: usize = SLOTS * BASE_BYTES;

/// Searches the heap for slots and returns their tables: those in the first block that has any, or with `all` those
/// in all blocks, for the interpreters of further threads. `fits` decides whether a slot and its topmost layer are a
/// handle.
pub(super) fn search(
    pid: u32,
    memory: &dyn Memory,
    all: bool,
    fits: impl Fn(u64, u64) -> bool,
) -> BTreeSet<u64> {
    let mut tables = BTreeSet::new();
    let is_handle = |slot: &u64| {
        let base = structure(memory, *slot);
        base.and_then(|base| top_of(*slot, &base)).is_some_and(|top| fits(*slot, top))
    };
    blocks(pid, memory, |start, data| {
        let mut slots = Vec::new();
        add_slots(start, data, &mut slots);
        tables.extend(slots.into_iter().filter(is_handle).filter_map(|slot| table_of(memory, slot)));
        if all || tables.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    tables
}

/// Adds the addresses at which a slot can be: its `head` is its own address.
pub(super) fn add_slots(start: u64, data: &[u8], slots: &mut Vec<u64>) {
    for (index, bytes) in data.as_chunks::<8>().0.iter().enumerate() {
        let slot = (start + 8 * index as u64).wrapping_sub(HEAD as u64);
        if u64::from_le_bytes(*bytes) == slot {
            slots.push(slot);
        }
    }
}

/// Returns the topmost layer of a slot that is in use.
fn top_of(slot: u64, base: &[u8; BASE_BYTES]) -> Option<u64> {
    let top = word(base, NEXT);
    (word(base, HEAD) == slot && word(base, TAB) == 0 && top != 0).then_some(top)
}

/// Returns the table of a slot. Perl uses slots from the first on, so before this slot are used slots, then the link.
pub(super) fn table_of(memory: &dyn Memory, slot: u64) -> Option<u64> {
    (1..SLOTS as u64)
        .map_while(|back| slot.checked_sub(back * BASE_BYTES as u64))
        .find(|at| memory.u64(at + HEAD as u64) != Some(*at))
        .filter(|at| is_link(memory, *at))
}

fn is_link(memory: &dyn Memory, at: u64) -> bool {
    structure::<BASE_BYTES>(memory, at).is_some_and(|base| base[TAB..].iter().all(|byte| *byte == 0))
}

/// Returns the used slots of these tables and of the tables that they point to, each with its topmost layer.
pub(super) fn handles(memory: &dyn Memory, tables: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let (mut found, mut visited) = (Vec::new(), BTreeSet::new());
    for first in tables {
        let mut at = *first;
        while at != 0 && found.len() < MAX_STREAMS && visited.insert(at) {
            let Some(table) = structure::<TABLE_BYTES>(memory, at).filter(|_| is_link(memory, at)) else {
                break;
            };
            let slots = table.as_chunks::<BASE_BYTES>().0.iter().enumerate().skip(1);
            let slots = slots.map(|(index, base)| (at + (index * BASE_BYTES) as u64, base));
            found.extend(slots.filter_map(|(slot, base)| Some((slot, top_of(slot, base)?))));
            at = word(&table, NEXT);
        }
    }
    found
}
