//! Searches the heap for the objects of the io types.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weir_sys::memory::Memory;

use super::objects::TYPE;
use super::streams::IoTypes;
use crate::copied_memory::word;
use crate::heap_search::blocks;

/// The alignment of Python's allocators.
const ALIGN: usize = 16;

/// Returns the addresses of the objects.
pub(super) fn objects(pid: u32, memory: &dyn Memory, types: &IoTypes) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let wanted = types.of_streams();
    blocks(pid, memory, |start, data| {
        search(start, data, wanted, &mut found);
        ControlFlow::Continue(())
    });
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
