//! Every object of the io types, wherever it is: a search of the heap for the addresses of these types.

use std::collections::BTreeSet;

use super::objects::TYPE;
use super::streams::Types;
use crate::memory::Memory;
use crate::walk::maps::{Place, regions};

/// So much is searched in one look; in a larger process, what is found in this much of it.
const SEARCH_MOST: u64 = 64 << 20;
const BLOCK: u64 = 1 << 20;
/// The allocators give nothing that is less aligned.
const ALIGN: usize = 16;

/// The addresses of the objects.
pub(super) fn objects(pid: u32, memory: &dyn Memory, types: &Types) -> BTreeSet<u64> {
    let (mut found, mut left) = (BTreeSet::new(), SEARCH_MOST);
    let regions = regions(pid);
    let likely = |place: &Place| matches!(place, Place::Heap | Place::Anonymous);
    for region in regions.iter().filter(|one| one.writable && one.private && likely(&one.place)) {
        let mut at = region.start;
        while at < region.end && left > 0 {
            let bytes = BLOCK.min(region.end - at).min(left);
            search(at, &memory.bytes(at, bytes as usize), types, &mut found);
            at += bytes;
            left -= bytes;
        }
    }
    found
}

fn search(start: u64, data: &[u8], types: &Types, found: &mut BTreeSet<u64>) {
    let at_type = TYPE as usize;
    for (index, object) in data.chunks_exact(ALIGN).enumerate() {
        let kind = u64::from_le_bytes(object[at_type..at_type + 8].try_into().unwrap_or_default());
        if types.of_type(kind).is_some() {
            found.insert(start + (index * ALIGN) as u64);
        }
    }
}
