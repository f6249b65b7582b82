//! Every object of the io types, wherever it is: a search of the heap for the addresses of these types.

use std::collections::BTreeSet;

use super::objects::TYPE;
use super::streams::Types;
use crate::memory::Memory;
use crate::walk::maps::{Place, regions};
use crate::walk::read::word;

/// So much is searched in one look; in a larger process, what is found in this much of it.
const SEARCH_MOST: u64 = 64 << 20;
const BLOCK: u64 = 256 << 10;
/// The allocators give nothing that is less aligned.
const ALIGN: usize = 16;

/// The addresses of the objects.
pub(super) fn objects(pid: u32, memory: &dyn Memory, types: &Types) -> BTreeSet<u64> {
    let (mut found, mut left) = (BTreeSet::new(), SEARCH_MOST);
    let (wanted, mut block) = (types.of_streams(), vec![0; BLOCK as usize]);
    let regions = regions(pid);
    let likely = |place: &Place| matches!(place, Place::Heap | Place::Anonymous);
    for region in regions.iter().filter(|one| one.writable && one.private && likely(&one.place)) {
        let mut at = region.start;
        while at < region.end && left > 0 {
            let bytes = BLOCK.min(region.end - at).min(left);
            let got = memory.read(at, &mut block[..bytes as usize]);
            search(at, &block[..got], wanted, &mut found);
            at += bytes;
            left -= bytes;
        }
    }
    found
}

fn search(start: u64, data: &[u8], wanted: [u64; 4], found: &mut BTreeSet<u64>) {
    for (index, object) in data.as_chunks::<ALIGN>().0.iter().enumerate() {
        let kind = word(object, TYPE as usize);
        if kind == wanted[0] || kind == wanted[1] || kind == wanted[2] || kind == wanted[3] {
            found.insert(start + (index * ALIGN) as u64);
        }
    }
}
